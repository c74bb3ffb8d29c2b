"""What does each message of a stdio client become over HTTP, and what comes back of it?

Lives here: the calls that are open, the session of the older revisions, the headers of every
request (computed from the body), which message of the server may pass. Does not live here:
sockets and tasks (connect), sentences (refusals).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate import strictjson
from tidegate.bridges import reading, refusals
from tidegate.bridges.endpoint import Endpoint
from tidegate.bridges.reading import Key
from tidegate.jsonrpc import Call, Code, Notification, Request, Response, Tree, typed
from tidegate.lines import LineTooLong
from tidegate.mcp.answers import Ask, Incoming, Reply, sort
from tidegate.mcp.eras import named_by
from tidegate.mcp.header_values import encode_value
from tidegate.mcp.http_upstream import HARMLESS
from tidegate.mcp.meta_keys import PREFIX, VERSION_KEY
from tidegate.mcp.param_headers import ParamHeaders
from tidegate.tools.stdio import MAX_LINE_BYTES, BadLine, error_line

_OWN_ID: Final = "tidegate/tools/list"
_VISIBLE: Final = re.compile(r"[\x21-\x7e]{1,1024}")
_MOST_OPEN: Final = 256
_MOST_ASKED: Final = 10_000
_NOBODY: Final[Key] = (True, "")

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Post:
    """One request to the server. `key` is the call that it asks, None if it asks nothing."""

    headers: Headers = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    key: Key | None = None
    method: str = ""
    modern: bool = False
    first_page: bool = True
    is_second: bool = False

    @property
    def harmless(self) -> bool:
        """Whether it may be sent again where nobody knows whether it arrived."""
        return self.method in HARMLESS


@dataclass(frozen=True, slots=True)
class Turn:
    """What follows from a message: lines for the client, a request, an exchange to close."""

    to_client: bytes = b""
    post: Post | None = None
    close: Key | None = None
    ending: Post | None = None
    note: str = ""


class Turns:
    """Both directions of one bridge. Lines and values in, lines and requests out."""

    def __init__(self, server: Endpoint, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._token = server.token
        self._open: dict[Key, Post] = {}
        self._cancelled: set[Key] = set()
        self._asked: dict[Key, None] = {}
        self._params = ParamHeaders()
        self._session: str | None = None
        self._version: str | None = None

    def from_client(self, line: bytes | LineTooLong) -> Turn:
        """A line of the client."""
        try:
            message = reading.read_client(line, self._max_line_bytes)
            body = reading.one_line(line).rstrip(b"\n") if isinstance(line, bytes) else b""
            if isinstance(message, Request):
                return self._request(message, body)
            if isinstance(message, Response):
                return self._response(message, body)
            return self._notification(message, body)
        except BadLine as bad:
            note = f"dropped a line of the client: {bad.reason}"
            return Turn(to_client=error_line(bad.code, bad.reason), note=note)

    def head(self, post: Post, status: int, headers: Mapping[str, str]) -> None:
        """The answer to `post` has begun: a session begins with the answer to initialize."""
        session = headers.get("mcp-session-id")
        if post.method == "initialize" and status == 200 and session is not None:
            self._session = session if _VISIBLE.fullmatch(session) else None

    def from_server(self, post: Post, incoming: Incoming) -> Turn:
        """One message of the answer to `post`, or of the stream that the server was offered."""
        key = post.key or _NOBODY
        message = sort(incoming, key[1])
        if message is None or (isinstance(message, Reply) and not self.is_open(post)):
            return Turn(note="dropped a message of the server that answers no open call")
        if isinstance(message, Reply):
            return self._reply(post, message)
        if isinstance(message, Ask):
            if post.modern:
                return Turn(note="dropped a request of the server, which this revision forbids")
            if len(self._asked) < _MOST_ASKED:
                self._asked[typed(message.id)] = None
        return Turn(_line(message.message, message.raw))

    def refused(self, post: Post, status: int, body: bytes, retry_after: str | None) -> Turn:
        """`post` was answered with a status that is no success, or with nothing."""
        if post.key is None:
            return Turn(note=f"the server did not take a message (HTTP {status})")
        error = refusals.own_error(body) or refusals.refusal(
            status, with_token=self._token is not None, in_session=self._session is not None
        )
        return self.failed(post, refusals.with_wait(error, retry_after))

    def failed(self, post: Post, error: Tree) -> Turn:
        """`post` will have no other answer than `error`; also when it has one already."""
        if post.key is None:
            return Turn(note="a message could not be delivered")
        if not self.is_open(post):
            return Turn()
        del self._open[post.key]
        if post.key in self._cancelled:
            self._cancelled.discard(post.key)
            return Turn()
        answer: Tree = {"jsonrpc": "2.0", "id": post.key[1], "error": error}
        return Turn(reading.line_of(answer))

    def schemas_wanted(self, post: Post, status: int, body: bytes) -> Post | None:
        """The list of tools, where a call was refused for headers that nobody could know.

        A client that has its list from elsewhere (a cache) calls without asking for one.
        """
        error = refusals.own_error(body) if status == 400 else None
        if error is None or error["code"] != Code.HEADER_MISMATCH or post.is_second:
            return None
        call = _call_in(post)
        if not post.modern or call is None or self._params.knows(call.params):
            return None
        return self._list(call, None)

    def schemas(self, page: Post, incoming: Incoming) -> Post | None:
        """Learns from a page of that list; the next page, if there is one."""
        call, reply = _call_in(page), sort(incoming, _OWN_ID)
        result = reply.message.get("result") if isinstance(reply, Reply) else None
        if call is None or not isinstance(result, dict):
            return None
        self._params.learn(result, first_page=page.first_page)
        cursor = result.get("nextCursor")
        known = (call.params or {}).get("cursor")
        return self._list(call, cursor) if isinstance(cursor, str) and cursor != known else None

    def again(self, post: Post) -> Post | None:
        """The call once more, with what was learned; None if it is not open any more."""
        call = _call_in(post)
        if post.key is None or call is None or not self.is_open(post):
            return None
        version = _claimed(call) or ""
        headers = (*_BODY, *self._modern(call, version))
        self._open[post.key] = replace(post, headers=headers, is_second=True)
        return self._open[post.key]

    def _list(self, call: Request, cursor: str | None) -> Post:
        meta = (call.params or {}).get("_meta")
        kept = meta if isinstance(meta, dict) else {}
        params: Tree = {"_meta": {k: v for k, v in kept.items() if k.startswith(PREFIX)}}
        if cursor is not None:
            params["cursor"] = cursor
        own = Request(_OWN_ID, "tools/list", params)
        headers = (*_BODY, *self._modern(own, _claimed(own) or ""))
        body = strictjson.dumps(own.encode())
        return Post(headers, body, None, own.method, modern=True, first_page=cursor is None)

    def ended(self) -> bytes:
        """Errors for every call that is still open."""
        turns = [self.failed(post, refusals.broken(refusals.ENDED)) for post in self._posts()]
        return b"".join(turn.to_client for turn in turns)

    def listening(self) -> Post | None:
        """The GET for what the server sends by itself; None without a legacy handshake."""
        if self._version is None:
            return None
        return Post((("Accept", "text/event-stream"), *self._legacy()))

    def resumption(self, post: Post, last_id: str | None) -> Post | None:
        """The GET for the rest of the stream of `post`; None where there is none to be had."""
        if last_id is None or post.modern or self._version is None or not self.is_open(post):
            return None
        wanted = (("Accept", "text/event-stream"), ("Last-Event-ID", last_id))
        return Post((*wanted, *self._legacy()))

    def ending(self) -> Post | None:
        """The DELETE that ends the session; None if there is none."""
        return None if self._session is None else Post(self._legacy())

    def is_open(self, post: Post) -> bool:
        """Whether the call of `post` has no answer yet; its id may be in use again."""
        return post.key is not None and self._open.get(post.key) is post

    def _posts(self) -> list[Post]:
        return list(self._open.values())

    def _request(self, request: Request, body: bytes) -> Turn:
        key = typed(request.id)
        if key in self._open and key not in self._cancelled:
            raise BadLine(Code.INVALID_REQUEST, "this id is already in flight")
        if len(self._open) >= _MOST_OPEN:
            return Turn(reading.failed(key, refusals.TOO_MANY, code=Code.EXCEEDS_LIMIT))
        claimed, ending = _claimed(request), None
        if request.method == "initialize" and claimed is None:
            ending = self.ending()
            self._session = self._version = None
        headers = self._legacy() if claimed is None else self._modern(request, claimed)
        first_page = "cursor" not in (request.params or {})
        modern = claimed is not None
        post = Post((*_BODY, *headers), body, key, request.method, modern, first_page)
        self._open[key] = post
        self._cancelled.discard(key)
        return Turn(post=post, ending=ending)

    def _response(self, response: Response, body: bytes) -> Turn:
        key = typed(response.id)
        if key not in self._asked:
            return Turn(note="dropped an answer of the client to no question of the server")
        del self._asked[key]
        return Turn(post=Post((*_BODY, *self._legacy()), body))

    def _notification(self, note: Notification, body: bytes) -> Turn:
        if note.method == "notifications/cancelled":
            key = reading.cancelled_key(note.params)
            post = self._open.get(key) if key is not None else None
            if key is not None and post is not None:
                if post.modern:
                    # Over HTTP the end of the exchange is the cancellation.
                    del self._open[key]
                    return Turn(close=key)
                self._cancelled.add(key)
            elif self._version is None:
                return Turn()
        claimed = _claimed(note)
        headers = self._legacy() if claimed is None else self._modern(note, claimed)
        return Turn(post=Post((*_BODY, *headers), body, method=note.method))

    def _reply(self, post: Post, reply: Reply) -> Turn:
        if not reading.is_fit(reply.message):
            return self.failed(post, refusals.broken(refusals.UNFIT))
        if post.key is not None:
            del self._open[post.key]
            self._cancelled.discard(post.key)
        message, result = reply.message, reply.message.get("result")
        if post.method == "initialize" and isinstance(result, dict):
            version = result.get("protocolVersion")
            is_fit = isinstance(version, str) and _VISIBLE.fullmatch(version)
            self._version = version if is_fit and isinstance(version, str) else None
        if post.method == "tools/list" and post.modern and result is not None:
            shown, dropped = self._params.learn(result, first_page=post.first_page)
            if dropped:
                note = f"left out {dropped} tools whose x-mcp-header breaks the rules"
                return Turn(reading.line_of({**message, "result": shown}), note=note)
        return Turn(_line(message, reply.raw))

    def _legacy(self) -> Headers:
        headers = self._authorization()
        if self._session is not None:
            headers.append(("Mcp-Session-Id", self._session))
        if self._version is not None:
            headers.append(("MCP-Protocol-Version", self._version))
        return tuple(headers)

    def _modern(self, call: Call, version: str) -> Headers:
        headers = [*self._authorization(), ("MCP-Protocol-Version", version)]
        headers.append(("Mcp-Method", encode_value(call.method)))
        if (name := named_by(call)) is not None:
            headers.append(("Mcp-Name", encode_value(name)))
        if call.method == "tools/call":
            headers += self._params.of(call.params)
        return tuple(headers)

    def _authorization(self) -> list[tuple[str, str]]:
        return [] if self._token is None else [("Authorization", f"Bearer {self._token}")]


_BODY: Final[Headers] = (
    ("Accept", "application/json, text/event-stream"),
    ("Content-Type", "application/json"),
)


def _call_in(post: Post) -> Request | None:
    """The request that a post carries; it was read strictly before."""
    message = reading.read(post.body)
    is_call = isinstance(message, Request) and message.method in ("tools/call", "tools/list")
    return message if isinstance(message, Request) and is_call else None


def _claimed(call: Call) -> str | None:
    """The revision that the message itself names, as those since 2026-07-28 do."""
    meta = (call.params or {}).get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    if version is None:
        return None
    if not isinstance(version, str) or _VISIBLE.fullmatch(version) is None:
        raise BadLine(Code.INVALID_REQUEST, "the protocol version in _meta is none")
    return version


def _line(message: Tree, raw: bytes | None) -> bytes:
    return reading.line_of(message) if raw is None else reading.one_line(raw)


__all__ = ["Post", "Turn", "Turns"]
