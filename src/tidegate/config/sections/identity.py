"""Who may call, and how much?

Lives here: identity (keys, anonymous, jwt), limits, prices.
"""

import hashlib
from typing import Annotated, Literal, get_args

from pydantic import Field

from tidegate.config.shapes import (
    Amount,
    AnyGlob,
    Cap,
    Glob,
    HttpUrl,
    JwksUrl,
    MoneyCap,
    Name,
    Section,
    Sha256,
    Token,
    Who,
    one_of,
)

Unit = Literal["tokens", "input_tokens", "output_tokens", "requests", "concurrent", "money_micros"]
UNITS: tuple[Unit, ...] = get_args(Unit)


class Caller(Section):
    """Whom a credential stands for."""

    principal: Who = Field(description="Name of the caller.", examples=["acme"])
    tenant: Who = Field(
        default="default", description="The customer or team the caller belongs to."
    )
    roles: tuple[Who, ...] = Field(
        default=(), description="Roles; the first one is shown in denials."
    )


class Key(Caller):
    """One key: by reference, or only its SHA-256."""

    model_config = one_of("key", "sha256")

    key: Token | None = Field(
        default=None, description="The key itself, as ${env:NAME} or ${file:PATH}."
    )
    sha256: Sha256 | None = Field(
        default=None,
        description='SHA-256 of the key in hex, as `printf %s "$KEY" | sha256sum` prints it.',
    )

    @property
    def digest(self) -> str | None:
        """The SHA-256 of the key in hex, however it was given."""
        if self.key is not None:
            return hashlib.sha256(self.key.get_secret_value().encode()).hexdigest()
        return self.sha256


class Claims(Section):
    """Which claims of a token name the caller."""

    principal: str = Field(default="sub", min_length=1, description="Claim with the principal.")
    tenant: str = Field(default="tenant", min_length=1, description="Claim with the tenant.")
    roles: str = Field(default="roles", min_length=1, description="Claim with the roles.")


class Jwt(Section):
    """An issuer of JSON Web Tokens."""

    issuer: HttpUrl = Field(
        description="Expected `iss`, compared exactly.", examples=["https://id.example"]
    )
    audience: str = Field(
        min_length=1, description="Expected `aud`.", examples=["https://gateway.example/mcp"]
    )
    jwks_url: JwksUrl = Field(
        description="Where the signing keys are.", examples=["https://id.example/jwks"]
    )
    algorithms: tuple[
        Literal[
            "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
        ],
        ...,
    ] = Field(
        default=("RS256", "ES256"), min_length=1, description="Accepted signature algorithms."
    )
    claims: Claims = Field(default_factory=Claims, description="Which claims name the caller.")
    leeway_s: float = Field(
        default=30.0, ge=0, le=600, description="Tolerated difference of clocks."
    )


class Identity(Section):
    """Who may call at all."""

    anonymous: Caller | None = Field(
        default=None, description="Principal of callers without a credential; null refuses them."
    )
    keys: tuple[Key, ...] = Field(default=(), description="Keys of callers.")
    jwt: tuple[Jwt, ...] = Field(default=(), description="Accepted issuers of tokens.")


class LimitMatch(Section):
    """Which requests a limit counts; every part that is given must match."""

    tenants: tuple[Glob, ...] = Field(
        default=("*",), min_length=1, description="Patterns of tenants."
    )
    roles: tuple[Glob, ...] = Field(default=("*",), min_length=1, description="Patterns of roles.")
    routes: tuple[Glob, ...] = Field(
        default=(),
        description='Patterns of route names; empty with `servers` or `tools`, else "*".',
    )
    servers: tuple[Glob, ...] = Field(default=(), description="Patterns of MCP server names.")
    tools: tuple[AnyGlob, ...] = Field(
        default=(), description="Patterns of MCP tool names, as their server has them."
    )


class Limit(Section):
    """A cap within a moving window; all limits that match must admit."""

    model_config = one_of(*UNITS)

    name: Name = Field(description="Names the limit across reloads.", examples=["per-minute"])
    match: LimitMatch = Field(default_factory=LimitMatch, description="What it counts.")
    per: Literal["key", "principal", "tenant", "global"] = Field(
        default="tenant", description="Whose requests share the cap."
    )
    tokens: Cap | None = Field(default=None, description="Cap on input and output tokens.")
    input_tokens: Cap | None = Field(default=None, description="Cap on input tokens.")
    output_tokens: Cap | None = Field(default=None, description="Cap on output tokens.")
    requests: Cap | None = Field(default=None, description="Cap on requests.")
    concurrent: Cap | None = Field(default=None, description="Cap on requests at a time.")
    money_micros: MoneyCap | None = Field(default=None, description="Cap on cost in millionths.")
    window_s: Annotated[float, Field(ge=0.1, le=31_622_400)] = Field(
        default=60.0, description="Length of the window."
    )
    on_store_down: Literal["closed", "local_share", "open"] | None = Field(
        default=None,
        description="Without the store; default closed, on redis local_share for tokens, requests.",
    )

    @property
    def unit(self) -> Unit:
        """What is counted; "tokens" for an entry that names nothing."""
        return next((unit for unit in UNITS if getattr(self, unit) is not None), "tokens")

    @property
    def cap(self) -> int:
        """How much of it fits into one window."""
        return int(getattr(self, self.unit) or 0)


class Price(Section):
    """Price of one model, in micro-units of money per million tokens."""

    input: Amount = Field(default=0, description="Per million input tokens; 2.50 is 2500000.")
    output: Amount = Field(default=0, description="Per million output tokens.")
    cached: Amount | None = Field(
        default=None, description="Per million cached input tokens; null: as `input`."
    )


Prices = dict[Name, dict[AnyGlob, Price]]
