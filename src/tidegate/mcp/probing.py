"""Which era does this server speak, as far as an answer of it tells?

Lives here: what an answer to server/discover or initialize proves, whether a refusal looks as if
the message was of the wrong era, and whether it proves that nothing was executed: only then may
the message be sent again. Does not live here: sending anything (gateway.servers.bridge).

Sources: MCP 2026-07-28, basic/versioning (which error means what) and basic/transports; what
servers of older revisions answer in the field: -32000 and -32600 with HTTP 400, plain text.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from tidegate.jsonrpc import Code, Tree
from tidegate.mcp.eras import LEGACY, MODERN
from tidegate.mcp.http_upstream import HARMLESS
from tidegate.mcp.introductions import DESCRIBING, Introduction, discovered, initialized

_REFUSING: Final = (400, 404, 405, 406, 415)
_LEGACY_SERVER_ERROR: Final = -32000
"""What servers before 2026-07-28 put beside HTTP 400; that revision must not use it."""
_OF_MODERN: Final = (Code.HEADER_MISMATCH, Code.MISSING_CAPABILITY, Code.UNSUPPORTED_VERSION)
_UNREAD: Final = (Code.PARSE_ERROR, Code.INVALID_REQUEST, _LEGACY_SERVER_ERROR)
_OF_METHODS: Final = (Code.METHOD_NOT_FOUND, Code.INVALID_PARAMS, Code.INTERNAL_ERROR)
_CHANGES_NOTHING: Final = HARMLESS | {
    "initialize",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "tasks/get",
    "tasks/list",
    "tasks/result",
}
"""What may be done twice: of what a server may have that is not here, nobody knows."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer as far as it matters here: its HTTP status and the message for our request.

    `message` is None if there was none; then a refusing status is a bare one. Over stdio the
    status is 200.
    """

    status: int
    message: Tree | None = None

    @property
    def code(self) -> int | None:
        """The error code; None without an error."""
        error = self.message.get("error") if self.message is not None else None
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    @property
    def text(self) -> str:
        """What an error says; empty without one."""
        error = self.message.get("error") if self.message is not None else None
        text = error.get("message") if isinstance(error, dict) else None
        return text if isinstance(text, str) else ""

    @property
    def is_refusal(self) -> bool:
        """Whether the server answered, and not with a result."""
        if self.message is None:
            return self.status in _REFUSING
        return "error" in self.message

    def is_like(self, other: "Heard") -> bool:
        """Whether both are refusals, and in the same words."""
        words = self.status, self.code, self.text
        return (
            self.is_refusal and other.is_refusal and words == (other.status, other.code, other.text)
        )

    @property
    def supported(self) -> tuple[str, ...]:
        """The revisions that an error says are supported."""
        error = self.message.get("error") if self.message is not None else None
        data = error.get("data") if isinstance(error, dict) else None
        named = data.get("supported") if isinstance(data, dict) else None
        return tuple(v for v in named if isinstance(v, str)) if isinstance(named, list) else ()


class Era(Enum):
    """What an answer proves."""

    MODERN = "modern"
    LEGACY = "legacy"
    BOTH = "both"
    UNKNOWN = "unknown"


def era_of(method: str, heard: Heard) -> Era:
    """What the answer to `method`, sent in the era that has it, proves about the server."""
    if heard.message is not None and "result" in heard.message:
        return _era_of_result(method, heard.message["result"])
    if not heard.is_refusal:
        return Era.UNKNOWN
    named = heard.supported
    if heard.code == Code.UNSUPPORTED_VERSION and named:
        older = any(version in LEGACY for version in named)
        if MODERN in named:
            return Era.BOTH if older else Era.MODERN
        return Era.LEGACY if older else Era.UNKNOWN
    if heard.code in _OF_MODERN:
        return Era.MODERN
    return Era.UNKNOWN


def _era_of_result(method: str, result: object) -> Era:
    if method == "server/discover" and discovered(result) is not None:
        named = result.get("supportedVersions") if isinstance(result, dict) else None
        older = isinstance(named, list) and any(version in LEGACY for version in named)
        return Era.BOTH if older else Era.MODERN
    if method == "initialize" and initialized(result) is not None:
        return Era.LEGACY
    return Era.UNKNOWN


def introduction_in(method: str, heard: Heard) -> Introduction | None:
    """What the server says of itself in a result of `method`; None if that is no such result."""
    result = heard.message.get("result") if heard.message is not None else None
    return discovered(result) if method == "server/discover" else initialized(result)


def is_of_wrong_era(method: str, heard: Heard, *, modern: bool) -> bool:
    """Whether a refusal looks as if the server did not speak the era of the message.

    `modern`: the message was of 2026-07-28. Errors that the message's own era defines for what a
    client did are none. A reason to ask the server what it speaks, no proof.
    """
    if not heard.is_refusal:
        return False
    return _is_wrong_for_legacy(heard, method) if modern else _is_wrong_for_modern(heard, method)


def _is_wrong_for_legacy(heard: Heard, method: str) -> bool:
    """Whether a server of an older revision would refuse a message of 2026-07-28 like this."""
    code = heard.code
    if code == Code.UNSUPPORTED_VERSION:
        return MODERN not in heard.supported
    if code == Code.METHOD_NOT_FOUND:
        return method in ("server/discover", "subscriptions/listen")
    if code == Code.INVALID_PARAMS:
        return method in DESCRIBING
    return code is None or code in _UNREAD


def _is_wrong_for_modern(heard: Heard, method: str) -> bool:
    """Whether a server of 2026-07-28 would refuse a message of an older revision like this."""
    code = heard.code
    if code in _OF_MODERN:
        return True
    if method == "initialize":
        return code in (None, Code.METHOD_NOT_FOUND, Code.INVALID_PARAMS, *_UNREAD)
    if code == Code.INVALID_PARAMS:
        # The envelope is missing: the one -32602 that a server of 2026-07-28 sends before it
        # looks at the method; others are about what the method was asked.
        return heard.status == 400 and "_meta" in heard.text
    return code is None and heard.status == 405


def proves_unexecuted(method: str, heard: Heard, probe: Heard | None) -> bool:
    """Whether a refusal of `method` proves that the server did nothing.

    `probe` is how the server refused something of the same era that harms nobody. A tool may
    answer with any code, and servers of 2026-07-28 give most of them HTTP 400 or 404, so nothing
    in the refusal of a call alone is a proof; that the harmless request was refused in the very
    same words is one. What changes nothing may be sent again after any refusal.
    """
    if not heard.is_refusal:
        return False
    return method in _CHANGES_NOTHING or (probe is not None and heard.is_like(probe))


def lost_session(heard: Heard) -> bool:
    """Whether the server says that it does not know the session that a message was sent in.

    HTTP 404 says so, and with it that nothing was executed, unless the error is one of a method.
    """
    return heard.status == 404 and heard.code not in _OF_METHODS


def speaks_of_sessions(heard: Heard) -> bool:
    """Whether a refusal is one that servers in the field give for an unknown session.

    It has HTTP 400, so a tool may have said it.
    """
    return heard.status == 400 and heard.code in _UNREAD and "session" in heard.text.lower()


__all__ = [
    "Era",
    "Heard",
    "era_of",
    "introduction_in",
    "is_of_wrong_era",
    "lost_session",
    "proves_unexecuted",
    "speaks_of_sessions",
]
