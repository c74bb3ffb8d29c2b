"""How does a failing provider break HTTP itself?

Lives here: faults that no server framework would send: resets, half heads, broken frames. They
write to the socket by exchange.Wire. Does not live here: how a listener hands the socket out
(listener), ports that refuse (doors).
"""

import re
from collections.abc import Iterator

from tidegate import sse, strictjson
from tidegate.demo.exchange import Wire, chunk, usage_chunk, wants_usage
from tidegate.demo.faults_act import EVENTS, JSON, USAGE, Act
from tidegate.demo.leaks import HOST, KEY

_HEAD = b"HTTP/1.1 200 OK\r\nx-upstream-host: " + HOST.encode() + b"\r\n"
_CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
_FIRST_WORD = (
    b'data: {"id":"chatcmpl-demo","object":"chat.completion.chunk","choices":[{"index":0,'
    b'"delta":{"role":"assistant","content":"Hello from here."},"finish_reason":null}]}\n\n'
)


class NoSocket(Exception):
    """The listener does not hand out its sockets; such a behavior cannot be played there."""


async def early_hints(act: Act) -> None:
    """Two interim heads, then the good answer."""
    hint = b"HTTP/1.1 103 Early Hints\r\nlink: <https://" + HOST.encode() + b">\r\n\r\n"
    _wire(act).write(b"HTTP/1.1 100 Continue\r\n\r\n" + hint)
    await act.good()


async def until_close(act: Act) -> None:
    """The good answer in HTTP/1.0: no length, its end is the end of the connection."""
    await _unframed(act, whole=True)


async def silent_cut(act: Act) -> None:
    """Half of the answer in HTTP/1.0: nothing below says that it is cut."""
    await _unframed(act, whole=False)


async def reset(act: Act) -> None:
    """A reset before a byte of the answer."""
    _wire(act).reset()
    await _over(act)


async def hang_up(act: Act) -> None:
    """The connection is closed before a byte of the answer."""
    _wire(act).close()
    await _over(act)


async def reset_later(act: Act) -> None:
    """A reset after the first words; of a document, after its first bytes."""
    wire = _wire(act)
    wire.write(_head(act) + _CHUNKED + _chunk(_FIRST_WORD if act.stream else b'{"id":"chatc'))
    # A reset throws away what the client has not read: give it the time to read.
    await act.exchange.gone_within(act.order.wait_s)
    wire.reset()
    await _over(act)


async def half_head(act: Act) -> None:
    """Half of a head, then the connection is closed."""
    _wire(act).write(_HEAD + b"content-ty")
    _wire(act).close()
    await _over(act)


async def slow_head(act: Act) -> None:
    """A head that comes byte by byte and never ends."""
    wire = _wire(act)
    wire.write(_HEAD + b"x-debug-key: ")
    while not await act.gone_within(act.order.wait_s):
        wire.write(b"a")


async def long_head(act: Act) -> None:
    """A head of 256 KiB."""
    line = b"x-debug-key: " + KEY.encode() + b"a" * 4_096 + b"\r\n"
    _wire(act).write(_HEAD + line * 64 + b"\r\n")
    _wire(act).close()
    await _over(act)


async def no_http(act: Act) -> None:
    """Another protocol altogether."""
    _wire(act).write(b"220 " + HOST.encode() + b" ESMTP ready\r\n")
    _wire(act).close()
    await _over(act)


async def bad_frame(act: Act) -> None:
    """A chunk whose length is no number, after the first words of a stream."""
    first = _chunk(_FIRST_WORD) if act.stream else b""
    _wire(act).write(_head(act) + _CHUNKED + first + b"zz\r\n" + HOST.encode() + b"\r\n0\r\n\r\n")
    _wire(act).close()
    await _over(act)


async def short_body(act: Act) -> None:
    """Fewer bytes than the head has promised, then the connection is closed."""
    first = _FIRST_WORD if act.stream else b'{"id":"chatcmpl-demo","choices":[{"index":0'
    _wire(act).write(_head(act) + b"content-length: 100000\r\n\r\n" + first)
    _wire(act).close()
    await _over(act)


async def bad_coding(act: Act) -> None:
    """A body that is not compressed as its head says."""
    body = b"this is no gzip of " + HOST.encode()
    length = b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
    _wire(act).write(_head(act) + length + body)
    _wire(act).close()
    await _over(act)


async def _unframed(act: Act, *, whole: bool) -> None:
    body = strictjson.dumps(act.whole())
    if act.stream:
        body = b"".join(map(sse.encode, _events(act)))
    if not whole:
        body = body[: len(body) // 2]
    _wire(act).write(_head(act).replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n" + body)
    _wire(act).close()
    await _over(act)


def _wire(act: Act) -> Wire:
    if act.exchange.wire is None:
        raise NoSocket
    return act.exchange.wire


async def _over(act: Act) -> None:
    """Until the server has noticed the end: then it adds nothing of its own."""
    await act.exchange.gone_within(None)


def _head(act: Act) -> bytes:
    return _HEAD + b"content-type: " + (EVENTS if act.stream else JSON) + b"\r\n"


def _events(act: Act) -> Iterator[bytes]:
    """The payloads of the good stream."""
    for index in range(act.choices):
        yield strictjson.dumps(chunk(act.model, index, {"role": "assistant", "content": ""}))
    for word in re.findall("[^ ]+ ?", act.text):
        for index in range(act.choices):
            yield strictjson.dumps(chunk(act.model, index, {"content": word}))
    for index in range(act.choices):
        yield strictjson.dumps(chunk(act.model, index, {}, finish="stop"))
    if wants_usage(act.request):
        yield strictjson.dumps(usage_chunk(act.model, USAGE))
    yield b"[DONE]"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


__all__ = [
    "NoSocket",
    "bad_coding",
    "bad_frame",
    "early_hints",
    "half_head",
    "hang_up",
    "long_head",
    "no_http",
    "reset",
    "reset_later",
    "short_body",
    "silent_cut",
    "slow_head",
    "until_close",
]
