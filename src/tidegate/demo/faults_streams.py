"""Which answers does a failing provider begin, and not end as it should?

Lives here: answers that come late, slowly, in part, or with a fault in their middle. Does not live
here: whole answers (faults_answers), faults below HTTP (faults_wire).
"""

import zlib

from tidegate import strictjson
from tidegate.demo.exchange import chunk
from tidegate.demo.faults_act import JSON, Act
from tidegate.demo.leaks import HOST, HTML, ORG

_HALF_WORDS, _FIVE_WORDS = 4, 5
_LONG_PIECE = b"a" * 65_536
_LONG_PIECES = 256
_BOMB_PIECE = b"a" * 1_048_576
_BOMB_PIECES = 256


async def slow(act: Act) -> None:
    """Not a byte for a while, then the good answer."""
    if not await act.gone_within(act.order.wait_s):
        await act.good()


async def hang(act: Act) -> None:
    """Never a byte."""
    await act.gone_within(None)


async def head_only(act: Act) -> None:
    """Status and headers, then never a byte."""
    await act.head()
    await act.gone_within(None)


async def slow_first_token(act: Act) -> None:
    """Status and headers at once, the first word after a while, then the rest."""
    await act.head()
    if act.stream:
        await act.roles()
    if await act.gone_within(act.order.wait_s):
        return
    if not act.stream:
        await act.exchange.write(strictjson.dumps(act.whole()))
        await act.exchange.end()
        return
    await act.words()
    await act.finish()


async def role_only(act: Act) -> None:
    """Everything that comes before the first word, then never a byte."""
    await act.head()
    if act.stream:
        await act.roles()
    else:
        await act.exchange.write(b'{"id":"chatcmpl-demo",')
    await act.gone_within(None)


async def dribble(act: Act) -> None:
    """Bytes often enough to keep any read timer from firing, and never an answer."""
    await act.head()
    drop = b": still thinking, says " + HOST.encode() + b"\n\n" if act.stream else b" "
    while not await act.gone_within(act.order.wait_s):
        await act.exchange.write(drop)


async def trickle(act: Act) -> None:
    """The good answer, one word at a time; a document in as many pieces."""
    await act.head()
    if act.stream:
        await act.roles()
        if await act.words(pause_s=act.order.wait_s):
            await act.finish()
        return
    data = strictjson.dumps(act.whole())
    size = -(-len(data) // 9)
    for start in range(0, len(data), size):
        if await act.gone_within(act.order.wait_s):
            return
        await act.exchange.write(data[start : start + size])
    await act.exchange.end()


async def _first_half(act: Act) -> None:
    await act.head()
    if act.stream:
        await act.roles()
        await act.words(0, _HALF_WORDS)
    else:
        await act.exchange.write(b'{"id":"chatcmpl-demo","object":"chat.completion","choi')


async def cut(act: Act) -> None:
    """Half of the good answer, then the connection is closed."""
    await _first_half(act)


async def stall(act: Act) -> None:
    """Half of the good answer, then never a byte."""
    await _first_half(act)
    await act.gone_within(None)


async def bad_chunk(act: Act) -> None:
    """The good answer with a piece in its middle that is no JSON."""
    if not act.stream:
        data = strictjson.dumps(act.whole())
        await act.document(data.replace(b'"choices":[', b'"choices":[' + HTML + b","))
        return
    await act.head()
    await act.roles()
    await act.words(0, _HALF_WORDS)
    await act.exchange.event(HTML)
    await act.words(_HALF_WORDS)
    await act.finish()


async def bad_utf8(act: Act) -> None:
    """The good answer with a letter in its middle that is none in UTF-8."""
    if not act.stream:
        await act.document(strictjson.dumps(act.whole()).replace(b"Hello", b"Hell\xc3"))
        return
    await act.head()
    await act.roles()
    await act.words(0, _HALF_WORDS)
    word = strictjson.dumps(chunk(act.model, 0, {"content": " may"}))
    await act.exchange.event(word.replace(b"may", b"ma\xc3"))
    await act.words(_HALF_WORDS)
    await act.finish()


async def after_done(act: Act) -> None:
    """The good answer, and then what nobody was to see: another event, or more of the document."""
    if not act.stream:
        await act.document(strictjson.dumps(act.whole()) + HTML)
        return
    await act.head()
    await act.roles()
    await act.words()
    for index in range(act.choices):
        await act.exchange.event(chunk(act.model, index, {}, finish="stop"))
    await act.exchange.write(b"data: [DONE]\n\ndata: " + HTML + b"\n\n")
    await act.exchange.end()


async def slow_error(act: Act) -> None:
    """The status of an overload at once, and an error object that does not end."""
    await act.head(JSON, 503)
    await act.exchange.write(b'{"error":{"message":"' + HOST.encode())
    await act.gone_within(None)


async def bomb(act: Act) -> None:
    """A quarter of a megabyte that unpacks to a thousand times as much."""
    await act.head(more=((b"content-encoding", b"gzip"),))
    pack = zlib.compressobj(wbits=31)
    await act.exchange.write(pack.compress(b'data: {"id":"' if act.stream else b'{"id":"'))
    for _ in range(_BOMB_PIECES):
        if await act.gone_within(0.0):
            return
        await act.exchange.write(pack.compress(_BOMB_PIECE) + pack.flush(zlib.Z_SYNC_FLUSH))


async def no_done(act: Act) -> None:
    """The good answer without the end mark of a stream; a document has none to miss."""
    if not act.stream:
        await act.good()
        return
    await act.head()
    await act.roles()
    await act.words()
    await act.finish(done=False)


async def no_finish(act: Act) -> None:
    """The whole text and the end mark, but no word that the answer is finished."""
    if not act.stream:
        answer = act.whole()
        message = {"role": "assistant", "content": act.text}
        await act.document({**answer, "choices": [{"index": 0, "message": message}]})
        return
    await act.head()
    await act.roles()
    await act.words()
    await act.exchange.event(b"[DONE]")
    await act.exchange.end()


async def too_long(act: Act) -> None:
    """One event, or one document, that does not end: 16 MiB, or until the client has enough."""
    await act.head()
    await act.exchange.write(b'data: {"id":"' if act.stream else b'{"id":"')
    for _ in range(_LONG_PIECES):
        if await act.gone_within(0.0):
            return
        await act.exchange.write(_LONG_PIECE)


async def comments(act: Act) -> None:
    """The good answer with all that a stream may hold besides: comments, ids, a retry time."""
    if not act.stream:
        await act.good()
        return
    await act.head()
    await act.exchange.write(f": {HOST}\n\nretry: 3\nid: {ORG}\n\n".encode())
    await act.roles()
    await act.words(0, _FIVE_WORDS)
    await act.exchange.write(b"event: ping\ndata: {}\n\n: " + HOST.encode() + b"\n\n")
    await act.words(_FIVE_WORDS)
    await act.finish()


async def odd_framing(act: Act) -> None:
    """The good answer as hard to read as the standard allows: a byte at a time, CR LF line ends,
    no space after the colon, one event on two data lines."""
    if not act.stream:
        await _byte_by_byte(act, strictjson.dumps(act.whole()))
        return
    lines = [b"\xef\xbb\xbf:hello"]
    for index in range(act.choices):
        opening = strictjson.dumps(chunk(act.model, index, {"role": "assistant", "content": ""}))
        first, comma, rest = opening.partition(b",")
        lines += [b"id:7\r\ndata:" + first + comma + b"\r\ndata:" + rest]
        lines += [_event(chunk(act.model, index, {"content": act.text}))]
        lines += [_event(chunk(act.model, index, {}, finish="stop"))]
    lines += [b"data:[DONE]"]
    await _byte_by_byte(act, b"\r\n\r\n".join([*lines, b""]))


def _event(value: object) -> bytes:
    return b"data:" + strictjson.dumps(value)


async def _byte_by_byte(act: Act, data: bytes) -> None:
    await act.head()
    for at in range(len(data)):
        await act.exchange.write(data[at : at + 1])
        if at % 16 == 0 and await act.gone_within(0.0):
            return
    await act.exchange.end()


__all__ = [
    "after_done",
    "bad_chunk",
    "bad_utf8",
    "bomb",
    "comments",
    "cut",
    "dribble",
    "hang",
    "head_only",
    "no_done",
    "no_finish",
    "odd_framing",
    "role_only",
    "slow",
    "slow_error",
    "slow_first_token",
    "stall",
    "too_long",
    "trickle",
]
