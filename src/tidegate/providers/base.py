"""What must the gateway know of a provider, whatever its dialect?

Lives here: the words of one upstream request and of one look at an answer. Does not live here:
any dialect's own fields (openai.py), sockets (transport), which provider is asked (routing).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tidegate.routing.outcome import Outcome

Dialect = Literal["openai", "anthropic"]
UsageWish = Literal["keep", "add", "change"]
"""What a request needs so that its stream reports usage; "keep": nothing."""


class MalformedEvent(ValueError):
    """The payload of an event is not what the dialect speaks."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One upstream as configured.

    `base_url` may carry a query; `query` is added to it. `credentials` may be empty for an
    upstream without keys. `models` maps the name a client uses to the upstream's; None keeps
    the name, "*" speaks for all names not listed and for requests without a model.
    """

    name: str
    base_url: str
    dialect: Dialect = "openai"
    credentials: tuple[str, ...] = field(default=(), repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    models: Mapping[str, str | None] = field(default_factory=dict)
    proxy: str | None = field(default=None, repr=False)

    def upstream_model(self, model: str | None) -> str | None:
        """The name to send instead of `model`; None = leave the body as it is."""
        if model is not None and model in self.models:
            return self.models[model]
        return self.models.get("*")

    def model_sent(self, upstream_model: str | None, model: str | None) -> str | None:
        """The name that this provider sees for `model`; None if it sees none.

        `upstream_model` is what the target itself asks for, which goes before `models`.
        """
        return upstream_model or self.upstream_model(model) or model


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One request in full. Its headers hold a credential: never log it."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    proxy: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider reports them; each 0 or more. `prompt` None: it did not say.

    What `total` has beyond the parts that are known is prompt and answer, nobody knows how much
    of each. `cached` of the prompt had been read before and may cost less.
    """

    prompt: int | None
    completion: int
    total: int
    cached: int = 0

    @property
    def undivided(self) -> int:
        """Tokens of which the provider did not say whether they are prompt or answer."""
        return 0 if self.prompt is not None else self.total - self.completion


@dataclass(slots=True)
class Glance:
    """What one event, or one whole answer, holds.

    `content`: there is something for the client to see (text, reasoning, refusal, tool call,
    audio or a finish reason), so an answer may begin. `text`: all generated text in it, tool
    arguments included, for counting. `only_usage`: nothing but a report of usage, as the event
    that `stream_options` asks for. `finished`: indexes of the choices that got their finish
    reason here. `open_choices`: indexes of those that got a role or content but no finish
    reason; an upstream that leaves the index out means 0. `done`: the dialect's end mark.
    `error`: an error object, classified; then there is no content. `foreign`: the event is none of
    the dialect, and nobody who speaks it can use it.
    """

    content: bool = False
    error: Outcome | None = None
    usage: Usage | None = None
    only_usage: bool = False
    text: str = ""
    finished: tuple[int, ...] = ()
    open_choices: tuple[int, ...] = ()
    done: bool = False
    foreign: bool = False


__all__ = [
    "Dialect",
    "Glance",
    "MalformedEvent",
    "Provider",
    "ProviderRequest",
    "Usage",
    "UsageWish",
]
