"""What does a server on stdio say with this line, and to whose call does it belong?

All clients share the pipes of one process. Lives here: the ids and progress tokens that keep
their calls apart, the way back from them, and what is answered on nobody's behalf. No pipes: the
driver is gateway.servers.children. Does not live here: where a line ends (tidegate.lines), what a
message means to a client (answers).

The ids on the wire are counted here and never used twice in one life of a process. With those of
the clients a late or second answer to a call that is over could reach another client, whose next
call took the id over.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tidegate import strictjson
from tidegate.jsonrpc import (
    Code,
    Id,
    Notification,
    Request,
    Tree,
    error_body,
    result_body,
    typed,
)
from tidegate.lines import LineTooLong
from tidegate.mcp.answers import Incoming, is_id, parse
from tidegate.mcp.http_upstream import without_baggage
from tidegate.mcp.meta_keys import SUBSCRIPTION_KEY
from tidegate.mcp.server_lines import FROM_CLIENTS, Key, claimed_key, documents, starts
from tidegate.mcp.sessions import NOBODY

NOT_SUPPORTED: Final = "This request is not supported through this gateway."
_CANCELLED: Final = "notifications/cancelled"
_PROGRESS: Final = "notifications/progress"
_MESSAGE: Final = "notifications/message"
_SUBSCRIBE: Final = "subscriptions/listen"
_LARGE_BYTES: Final = 65_536
_LONGEST_ASK_ID: Final = 1024
_ONE_AND_OTHERS: Final = 2


@dataclass(slots=True, eq=False)
class Call:
    """A request that the server has and has not answered; made by `Conversation.ask` only."""

    wire_id: int
    client_id: Id
    owner: object
    token: Id | None
    method: str
    is_cancelled: bool = False

    @property
    def is_initialize(self) -> bool:
        """Whether it must never be cancelled."""
        return self.method == "initialize"


@dataclass(frozen=True, slots=True)
class Line:
    """What stands in one line: messages, how much was none, and which call it fails to answer.

    `size` is that of the whole line in bytes.
    """

    messages: tuple[Incoming, ...] = ()
    size: int = 0
    junk_bytes: int = 0
    claims: Key | None = None
    reason: str = "malformed"


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message for the reader of `call`, in its own ids; `last`: its answer.

    `lossy`: of these any may be missing.
    """

    call: Call
    incoming: Incoming
    last: bool = False
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """`call` will get no answer, for a constant reason."""

    call: Call
    reason: str


@dataclass(frozen=True, slots=True)
class Told:
    """A line for the server."""

    line: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    """A notification that belongs to no call."""

    message: Tree


Event = Delivered | Failed | Told | Heard


@dataclass(slots=True)
class Tally:
    """What a server said that went nowhere, in its whole life."""

    junk_lines: int = 0
    junk_bytes: int = 0
    long_lines: int = 0
    stray_answers: int = 0
    stray_notes: int = 0
    questions: int = 0


def read_line(line: bytes | LineTooLong) -> Line:
    """What stands in `line`. Cost: one strict parse, a few more of a line that is no message.

    Junk before a message (what was printed without a line end) is left out; nothing of it is in
    the result.
    """
    if isinstance(line, LineTooLong):
        claims = claimed_key(line)
        return Line(size=line.length, junk_bytes=line.length, claims=claims, reason="too_large")
    whole = _messages([line])
    if whole is not None:
        return Line(whole, len(line))
    for start in starts(line):
        rest = _messages(documents(line[start:]))
        if rest:
            return Line(rest, len(line), junk_bytes=start)
    keys = map(claimed_key, (line, *(line[start:] for start in starts(line))))
    claims = next((key for key in keys if key is not None), None)
    return Line(size=len(line), junk_bytes=len(line), claims=claims)


def _messages(parts: Iterable[bytes]) -> tuple[Incoming, ...] | None:
    """The messages in `parts`, each a document; None if anything in it is none."""
    found: list[Incoming] = []
    for part in parts:
        incoming = parse(part)
        if not incoming or not all(_is_message(each.value) for each in incoming):
            return None
        found += incoming
    return tuple(found)


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    if isinstance(value.get("method"), str):
        return "result" not in value and "error" not in value
    return "method" not in value and "id" in value


class Conversation:
    """Everything between the clients and one life of a server."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._calls: dict[int, Call] = {}
        self._last_id = 0
        self._owners: set[object] = set()

    @property
    def open_calls(self) -> int:
        """How many calls wait for an answer."""
        return len(self._calls)

    def ask(self, request: Request, *, client_id: Id, owner: object) -> tuple[Call, bytes]:
        """A call and its line; its answer will carry `client_id`."""
        self._last_id += 1
        params, token = _with_token(request.params, self._last_id)
        call = Call(self._last_id, client_id, owner, token, request.method)
        self._calls[call.wire_id] = call
        if owner != NOBODY and len(self._owners) < _ONE_AND_OTHERS:
            self._owners.add(owner)
        message = Request(call.wire_id, request.method, params).encode()
        return call, _line(without_baggage(message))

    def tell(self, note: Notification, *, owner: object) -> bytes:
        """The line of a notification; b"" if it must not be sent.

        A cancellation names the call as its client does. One of a call that is over, or of
        somebody else, is dropped.
        """
        if note.method != _CANCELLED:
            return _line(without_baggage(note.encode()))
        params = note.params or {}
        call = self._named(params.get("requestId"), owner)
        if call is None or call.is_cancelled or call.is_initialize:
            return b""
        call.is_cancelled = True
        return _line(Notification(_CANCELLED, {**params, "requestId": call.wire_id}).encode())

    def leave(self, call: Call) -> bytes:
        """Nobody waits for `call` any more; the line that tells the server so, if it should know.

        An initialize must not be cancelled (MCP, basic/utilities/cancellation).
        """
        if self._calls.pop(call.wire_id, None) is None or call.is_cancelled or call.is_initialize:
            return b""
        params: Tree = {"requestId": call.wire_id, "reason": "the client has gone"}
        return _line(Notification(_CANCELLED, params).encode())

    def forget(self, call: Call) -> None:
        """The line of `call` was not sent."""
        self._calls.pop(call.wire_id, None)

    def end(self) -> list[Call]:
        """The server has ended: the calls that were open."""
        left = list(self._calls.values())
        self._calls.clear()
        return left

    def hear(self, line: Line) -> list[Event]:
        """What follows from a line of the server, in order."""
        if line.junk_bytes:
            self.tally.junk_lines += 1
            self.tally.junk_bytes += line.junk_bytes
            self.tally.long_lines += line.reason == "too_large"
        events = [event for each in line.messages if (event := self._message(each, line.size))]
        if line.claims is not None and (call := self._take(line.claims[1])) is not None:
            events.append(Failed(call, line.reason))
        return events

    def _message(self, incoming: Incoming, size: int) -> Event | None:
        message = incoming.value
        if not isinstance(message, dict):
            return None
        if "method" not in message:
            return self._answer(message, incoming.raw, size)
        if "id" in message:
            return self._question(message)
        return self._note(message, incoming.raw)

    def _answer(self, message: Tree, raw: bytes | None, size: int) -> Event | None:
        call = self._take(message["id"])
        if call is None:
            self.tally.stray_answers += 1
            return None
        if ("result" in message) == ("error" in message):
            return Failed(call, "malformed")
        shown = {**message, "id": call.client_id}
        if isinstance(result := message.get("result"), dict):
            shown["result"] = _of_client(result, call)
        # The bytes of a large one are made where it is masked, beside the loop.
        raw = strictjson.dumps(shown) if size <= _LARGE_BYTES else None
        return Delivered(call, Incoming(shown, raw, came_in=size), last=True)

    def _question(self, message: Tree) -> Event | None:
        """Answered at once: who it is for cannot be known where all clients share the pipe."""
        asked, method = message["id"], message["method"]
        is_short = isinstance(asked, int) or (
            isinstance(asked, str) and len(asked) <= _LONGEST_ASK_ID
        )
        if method in FROM_CLIENTS or not is_id(asked) or not is_short:
            self.tally.stray_notes += 1
            return None
        self.tally.questions += 1
        if method == "ping":
            return Told(_line(result_body(asked, {})))
        return Told(_line(error_body(asked, Code.METHOD_NOT_FOUND, NOT_SUPPORTED)))

    def _note(self, message: Tree, raw: bytes | None) -> Event | None:
        method, params = message["method"], message.get("params")
        known = params if isinstance(params, dict) else {}
        if method == _PROGRESS:
            return self._progress(message, known)
        meta = known.get("_meta")
        if isinstance(meta, dict) and SUBSCRIPTION_KEY in meta:
            call = self._subscribed(meta[SUBSCRIPTION_KEY])
            if call is not None:
                return Delivered(call, _rewritten(message, _of_client(known, call)))
        elif method == _MESSAGE and (call := self._talkative()) is not None:
            return Delivered(call, Incoming(message, raw), lossy=True)
        elif method not in FROM_CLIENTS and method != _CANCELLED:
            return Heard(message)
        self.tally.stray_notes += 1
        return None

    def _progress(self, message: Tree, params: Tree) -> Event | None:
        call = self._open(params.get("progressToken"))
        if call is None or call.token is None:
            self.tally.stray_notes += 1
            return None
        shown = {**params, "progressToken": call.token}
        return Delivered(call, _rewritten(message, shown), lossy=True)

    def _talkative(self) -> Call | None:
        """The call that a log message is about, which does not say so: the newest that can be.

        None once the process has worked for two owners: it may say something about a call long
        after it answered it, and nobody hears what the calls of others make known.
        """
        if len(self._owners) != 1:
            return None
        able = (c for c in self._calls.values() if c.method != _SUBSCRIBE and c.owner != NOBODY)
        return next(reversed(tuple(able)), None)

    def _subscribed(self, named: object) -> Call | None:
        """The call of a subscription; servers repeat its id as it was or as a string."""
        if isinstance(named, str) and named.isascii() and named.isdigit() and len(named) < 20:
            return self._open(int(named))
        return self._open(named)

    def _open(self, wire_id: object) -> Call | None:
        """The open call with this id; 1, "1", 1.0 and true are four ids."""
        if isinstance(wire_id, bool) or not isinstance(wire_id, int):
            return None
        return self._calls.get(wire_id)

    def _take(self, wire_id: object) -> Call | None:
        call = self._open(wire_id)
        if call is not None:
            del self._calls[call.wire_id]
        return call

    def _named(self, client_id: object, owner: object) -> Call | None:
        """The open call that its owner knows under this id; None if it could be two."""
        if isinstance(client_id, bool) or not isinstance(client_id, int | str):
            return None
        key = typed(client_id)
        found = [
            call
            for call in self._calls.values()
            if call.owner == owner and typed(call.client_id) == key
        ]
        return found[0] if len(found) == 1 else None


def _with_token(params: Tree | None, wire_id: int) -> tuple[Tree | None, Id | None]:
    """`params` with a progress token that nobody else has, and the client's own."""
    meta = params.get("_meta") if params is not None else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if params is None or not isinstance(meta, dict) or not is_id(token):
        return params, None
    return {**params, "_meta": {**meta, "progressToken": wire_id}}, token


def _of_client(value: Tree, call: Call) -> Tree:
    """`value` under the client's id, where its `_meta` names the subscription it belongs to."""
    meta = value.get("_meta")
    ours = (call.wire_id, str(call.wire_id))
    if not isinstance(meta, dict) or meta.get(SUBSCRIPTION_KEY) not in ours:
        return value
    is_text = isinstance(meta[SUBSCRIPTION_KEY], str)
    named = str(call.client_id) if is_text else call.client_id
    return {**value, "_meta": {**meta, SUBSCRIPTION_KEY: named}}


def _rewritten(message: Tree, params: Tree) -> Incoming:
    shown = {**message, "params": params}
    return Incoming(shown, strictjson.dumps(shown))


def _line(message: Tree) -> bytes:
    return strictjson.dumps(message) + b"\n"


__all__ = [
    "NOT_SUPPORTED",
    "Call",
    "Conversation",
    "Delivered",
    "Event",
    "Failed",
    "Heard",
    "Line",
    "Tally",
    "Told",
    "read_line",
]
