"""Which models exist, and who answers for them?

Lives here: providers and routes.
"""

from typing import Literal

from pydantic import Field

from tidegate.config.sections.redaction import Redaction
from tidegate.config.shapes import (
    AnyGlob,
    BaseUrl,
    Count,
    Glob,
    HeaderName,
    HeaderValue,
    ModelName,
    Name,
    ParameterName,
    ProxyUrl,
    Scalar,
    Seconds,
    SecondsOrZero,
    Section,
    SentModel,
    Token,
)


def _same_names() -> dict[str, str | None]:
    return {"*": None}


class Provider(Section):
    """An upstream that speaks a model API."""

    dialect: Literal["openai", "anthropic"] = Field(
        default="openai", description="The API it speaks."
    )
    base_url: BaseUrl = Field(
        description="Address up to and including the version.",
        examples=["https://api.example/v1"],
    )
    credentials: tuple[Token, ...] = Field(
        default=(), description="Keys, as ${env:NAME} or ${file:PATH}; none for an open upstream."
    )
    headers: dict[HeaderName, HeaderValue] = Field(
        default_factory=dict, description="Headers added to every request."
    )
    query: dict[str, HeaderValue] = Field(
        default_factory=dict, description="Query parameters added to every request."
    )
    models: dict[ModelName, str | None] = Field(
        default_factory=_same_names,
        description="Name in requests -> name at the provider; null keeps the name.",
    )
    proxy: ProxyUrl | None = Field(
        default=None, repr=False, description="HTTP proxy on the way to it."
    )


class RouteMatch(Section):
    """Whose requests a route serves."""

    tenants: tuple[Glob, ...] = Field(
        default=("*",), min_length=1, description="Patterns of tenants."
    )
    roles: tuple[Glob, ...] = Field(default=("*",), min_length=1, description="Patterns of roles.")


class Candidate(Section):
    """One target of a route."""

    provider: Name = Field(description="A name under `providers`.", examples=["primary"])
    model: SentModel | None = Field(
        default=None,
        description="Name of the model at the provider, whatever was asked for; "
        "null: as `providers.*.models` says.",
    )
    parameters: dict[ParameterName, Scalar] = Field(
        default_factory=dict,
        description="Fields set in every request to it; null takes a field out.",
        examples=["{ temperature: 0.2, max_tokens: 512 }"],
    )
    weight: int = Field(default=1, ge=1, le=1000, description="Share, for the strategy `weighted`.")
    context_tokens: int | None = Field(
        default=None, ge=1, le=1_000_000_000, description="Longest request it takes; null: unknown."
    )


class Deadlines(Section):
    """How long a target may take; the earliest deadline counts."""

    connect_s: Seconds = Field(default=2.0, description="Until the connection stands.")
    first_token_s: Seconds = Field(default=10.0, description="Until the first content.")
    idle_s: Seconds = Field(default=15.0, description="Between two pieces of a stream.")
    total_s: Seconds = Field(
        default=60.0, description="Whole request, all attempts, until the first token."
    )
    stream_total_s: Seconds = Field(default=300.0, description="Whole stream.")


class Cooling(Section):
    """How long a target rests after it said 429."""

    on_429_s: SecondsOrZero = Field(
        default=5.0, description="When it gives no time of its own; 0: not at all."
    )
    max_s: SecondsOrZero = Field(default=600.0, description="Longest rest, whatever it asks for.")


class Breaker(Section):
    """When a target is skipped because it keeps failing."""

    consecutive: Count = Field(default=5, description="Failures in a row that open it.")
    ratio: float = Field(default=0.5, gt=0, le=1, description="Share of failures that opens it.")
    window_s: Seconds = Field(default=30.0, description="Window of that share.")
    min_results: Count = Field(
        default=5, description="Results below which the share does not count."
    )
    open_s: Seconds = Field(default=5.0, description="First rest, give or take a fifth.")
    max_open_s: Seconds = Field(
        default=60.0,
        description="Longest rest, give or take a fifth; it doubles until then, "
        "after failures within a second up to 10 s.",
    )
    slow_tokens_per_s: float = Field(
        default=0.0,
        ge=0,
        le=100_000,
        description="A stream of at least 20 tokens that runs slower is slow; 0: none is.",
    )
    slow_ratio: float = Field(
        default=0.8, gt=0, le=1, description="Share of slow answers that opens it."
    )


class Route(Section):
    """Which targets serve a model, in which order; the first route that matches wins."""

    name: Name = Field(description="Names the route in limits and records.", examples=["default"])
    model: AnyGlob = Field(
        default="*", description='Pattern of the model; none asked for means "*".'
    )
    match: RouteMatch = Field(default_factory=RouteMatch, description="Whose requests.")
    strategy: Literal["priority", "weighted", "least_latency"] = Field(
        default="priority", description="How the next candidate is chosen."
    )
    candidates: tuple[Candidate, ...] = Field(
        min_length=1,
        description="Targets in order.",
        examples=["[{ provider: primary }]"],
    )
    deadlines: Deadlines = Field(default_factory=Deadlines, description="Time bounds.")
    attempts: int = Field(default=3, ge=1, le=20, description="Most attempts for one request.")
    default_output_tokens: int = Field(
        default=1024,
        ge=1,
        le=10_000_000,
        description="Reserved for the answer to a request that names no maximum.",
    )
    cooling: Cooling = Field(default_factory=Cooling, description="Rest after 429.")
    breaker: Breaker = Field(default_factory=Breaker, description="Rest after failures.")
    failover_on_credential_error: bool = Field(
        default=False, description="After 401 or 403, try a target that has another credential."
    )
    redaction: Redaction = Field(
        default_factory=Redaction, description="Overrides of `redaction` for this route."
    )
