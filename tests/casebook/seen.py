"""What was observed while a case ran?

Lives here: the values that drivers fill and rules judge, and the one way to say that something
else was seen than expected. Does not live here: how it is observed (drivers), what is right.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.casebook.cases import Case
from tests.casebook.events import Chat, Event, decode

SHOWN_CHARS = 160
WIDEN = 3.0
"""Time windows of the case files are widened by this factor."""


class Mismatch(AssertionError):
    """Something else was seen; the text is one short line."""


def short(value: object) -> str:
    """A value on one line, cut."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


def check(holds: object, seen: str) -> None:
    """Raise Mismatch with what was seen unless `holds`."""
    if not holds:
        raise Mismatch(seen)


def equal(got: object, wanted: object, what: str) -> None:
    """Raise Mismatch unless the two are equal, in type too."""
    if not same(got, wanted):
        raise Mismatch(f"{what}: {short(got)} instead of {short(wanted)}")


def same(one: object, other: object) -> bool:
    """JSON-equal, with 1, 1.0 and true told apart."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@dataclass
class Call:
    """One request as a scripted upstream received it, and what it wrote when."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    at_s: float
    server: str = ""
    connection: int = 0
    writes: list[tuple[float, bytes]] = field(default_factory=list)
    answered: int = 0
    finished_s: float | None = None
    gone_s: float | None = None

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)

    @cached_property
    def json(self) -> Any:
        """The body; None if it is no JSON."""
        return parsed(self.body)


@dataclass
class Sent:
    """One request of the client."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)

    @cached_property
    def json(self) -> Any:
        """The body; None if it is no JSON."""
        return parsed(self.body)


@dataclass
class Exchange:
    """One request and what came back. `status` 0: no answer."""

    sent: Sent
    label: str = ""
    variant: dict[str, Any] | None = None
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    started_s: float = 0.0
    head_s: float = 0.0
    ended_s: float = 0.0
    whole: bool = False
    calls: list[Call] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    canned: bytes = b""
    by_sdk: bool = False
    client_error: BaseException | None = None
    sdk_text: str | None = None
    secret: str = ""

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)

    @cached_property
    def body(self) -> bytes:
        """Every byte of the body."""
        return b"".join(data for _, data in self.chunks)

    @cached_property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 become U+FFFD."""
        return self.body.decode("utf-8", "replace")

    @cached_property
    def json(self) -> Any:
        """The body as JSON; None if it is none."""
        return parsed(self.body)

    @property
    def is_stream(self) -> bool:
        """Whether the answer is an event stream."""
        return (self.header("content-type") or "").startswith("text/event-stream")

    @cached_property
    def events(self) -> list[Event]:
        """The blocks of the stream."""
        return decode(self.chunks) if self.is_stream else []

    @cached_property
    def chat(self) -> Chat:
        """The answer as a chat client sees it."""
        return Chat.of_events(self.events) if self.is_stream else Chat.of_answer(self.json)

    @cached_property
    def canned_chat(self) -> Chat:
        """What the upstream said, seen in the same way."""
        if self.canned.lstrip().startswith(b"{"):
            return Chat.of_answer(parsed(self.canned))
        return Chat.of_events(decode([(0.0, self.canned)]))

    @cached_property
    def messages(self) -> list[dict[str, Any]]:
        """Every JSON-RPC message of the answer, from a JSON body or from events."""
        values = [event.json for event in self.events] if self.is_stream else [self.json]
        flat = [
            item for value in values for item in (value if isinstance(value, list) else [value])
        ]
        return [item for item in flat if isinstance(item, dict)]

    @cached_property
    def rpc(self) -> dict[str, Any]:
        """The last JSON-RPC message that is an answer; {} if there is none."""
        answers = [m for m in self.messages if "result" in m or "error" in m]
        return answers[-1] if answers else {}

    @property
    def error_code(self) -> object:
        """The code of the error, of the envelope or of JSON-RPC; None without one."""
        for message in (self.rpc, *self.chat.errors):
            error = message.get("error")
            if isinstance(error, dict):
                return error.get("code")
        return None

    @property
    def name(self) -> str:
        """How a report names it."""
        return self.label or f"{self.sent.method} {self.sent.path}"


@dataclass
class Reply:
    """One line of a stdio server, parsed; `after_s` counts from when the input was written."""

    line: str
    message: dict[str, Any]
    after_s: float

    @property
    def id(self) -> Any:
        """The id."""
        return self.message.get("id")

    @property
    def code(self) -> object:
        """The code of the error."""
        error = self.message.get("error")
        return error.get("code") if isinstance(error, dict) else None

    @property
    def result(self) -> Any:
        """The result."""
        return self.message.get("result")

    @property
    def refused(self) -> bool:
        """An error, or a result that says so."""
        result = self.result
        return "error" in self.message or (
            isinstance(result, dict) and result.get("isError") is True
        )


@dataclass
class Talk:
    """One conversation with a stdio server."""

    sent: list[bytes] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    impure: list[str] = field(default_factory=list)
    stderr: str = ""
    running: bool | None = None
    exit_code: int | None = None
    exit_after_s: float | None = None
    cpu_s: float | None = None
    refunded: str | None = None
    tools: list[dict[str, Any]] = field(default_factory=list)

    def requests(self) -> list[dict[str, Any]]:
        """The lines sent that are single JSON requests."""
        values = (parsed(line) for line in self.sent)
        return [value for value in values if isinstance(value, dict) and "id" in value]

    def with_id(self, wanted: object) -> list[Reply]:
        """The replies to one id, type included."""
        return [reply for reply in self.replies if same(reply.id, wanted)]


@dataclass
class Seen:
    """Everything one case showed.

    `others` holds runs of the same requests in another role; `decoys` counts connections to
    ports that no configuration names; `settled` is what the last request was charged.
    """

    case: Case
    profile: str = "brief"
    exchanges: list[Exchange] = field(default_factory=list)
    variants: list[Exchange] = field(default_factory=list)
    others: dict[str, list[Exchange]] = field(default_factory=dict)
    talk: Talk = field(default_factory=Talk)
    log: str = ""
    alive: bool = True
    extra_bytes: int | None = None
    settled: dict[str, int] = field(default_factory=dict)
    credential: str = ""
    decoys: dict[int, int] = field(default_factory=dict)

    @property
    def everything(self) -> list[Exchange]:
        """Base requests and variants."""
        return [*self.exchanges, *self.variants]


def parsed(data: bytes | str) -> Any:
    """JSON, or None."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def strings(value: object) -> Iterator[str]:
    """Every string of a JSON tree, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
