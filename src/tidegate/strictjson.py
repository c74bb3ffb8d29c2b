"""Is this one unambiguous JSON document?

Lives here: the only loader for what a client sends, and the writer that goes with it. Two
parsers must never read two different documents in the same bytes, so everything that RFC 8259
leaves to the parser is refused: duplicate keys, lone surrogates, numbers that become infinite,
other encodings than UTF-8. Does not live here: what an upstream sends (msgspec, lazily), what
the document means.
"""

import json
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Literal, NoReturn

_INFINITE = (float("inf"), float("-inf"))
_BOM = b"\xef\xbb\xbf"
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_STEP = tuple({b"[": 1, b"]": -1}.get(bytes((byte,)), 0) for byte in range(256))
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


Kind = Literal["syntax", "ambiguous"]


class StrictJSONError(ValueError):
    """Not one unambiguous document.

    `kind` is "syntax" (no strict parser reads it) or "ambiguous" (parsers may disagree on what
    it says). `reason` is a constant phrase of ours: it holds no value, name or offset of the
    document, so it may be shown to the client.
    """

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind: Kind = kind
        self.reason = reason


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise StrictJSONError("ambiguous", "an object has the same key twice")
    return members


def _float(text: str) -> float:
    value = float(text)
    if value in _INFINITE:
        raise StrictJSONError("syntax", "a number is too large")
    return value


def _constant(_text: str) -> NoReturn:
    raise StrictJSONError("syntax", "NaN and Infinity are not JSON")


def _decoder(real: Callable[[str], object]) -> Callable[[str], object]:
    return json.JSONDecoder(
        object_pairs_hook=_object, parse_float=real, parse_constant=_constant
    ).decode


_DECODE = _decoder(_float)
# Trees from loads() have no cycles; a cycle built by our own code ends in RecursionError.
_ENCODE = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
_WRITE_ANY = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def loads(
    data: bytes, *, max_depth: int = 64, real: Callable[[str], object] | None = None
) -> object:
    """The document in `data`: dict, list, str, int (exact), float (finite), bool or None.

    `max_depth` counts open arrays and objects; `[]` has depth 1. Integers of more than 4,300
    digits (the interpreter's own bound) are refused. `real` makes the value of a number with a
    fraction or an exponent from its literal, instead of a finite float. Raises StrictJSONError
    and nothing else. Cost: linear; 1.3 times json.loads for a short chat, 2.6 times for many
    messages or tools.
    """
    if not data:
        raise StrictJSONError("syntax", "the body is empty")
    if data.startswith(_BOM):
        raise StrictJSONError("syntax", "the body begins with a byte order mark")
    if _is_deeper(data, max_depth):
        raise StrictJSONError("syntax", "the document is nested too deeply")
    try:
        decode = _DECODE if real is None else _decoder(real)
        value: object = decode(data.decode())
        if _SURROGATE.search(data):
            _WRITE_ANY(value).encode()  # half a pair is exactly what UTF-8 has no bytes for
    except (ValueError, RecursionError) as error:
        kind, reason = _refusal(error)
    else:
        return value
    # Made anew and out here: the parser's exceptions, as context or by their frames, would keep
    # the document alive for as long as this one lives.
    raise StrictJSONError(kind, reason)


def dumps(value: object) -> bytes:
    """Compact UTF-8 for `value`: what loads() returned comes back equal, integers exact.

    Raises ValueError for NaN, infinities and lone surrogates, TypeError for foreign types.
    """
    return _ENCODE(value).encode()


def _refusal(error: ValueError | RecursionError) -> tuple[Kind, str]:
    match error:
        case StrictJSONError():
            return error.kind, error.reason
        case UnicodeDecodeError():
            return "syntax", "the body is not UTF-8"
        case UnicodeEncodeError():
            return "syntax", "a string holds half a surrogate pair"
        case json.JSONDecodeError(msg="Extra data"):
            return "syntax", "there is data after the document"
        case json.JSONDecodeError():
            return "syntax", "the body is not valid JSON"
        case RecursionError():  # only with a max_depth near the interpreter's own limit
            return "syntax", "the document is nested too deeply"
        case _:  # int() refuses what would cost it quadratic time
            return "syntax", "a number is too large"


def _is_deeper(data: bytes, max_depth: int) -> bool:
    """Whether more than `max_depth` brackets are open at once, outside of strings.

    Right up to the first syntax error; beyond it nothing matters, for the parser stops there.
    Linear and without recursion: passes in C, from the cheap and rough to the exact one.
    """
    structure = data.translate(_ONE_KIND, _NO_STRUCTURE)
    if structure.count(b"[") <= max_depth:  # brackets in strings included
        return False
    if b"\\" in data:
        unescaped = data.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        structure = unescaped.translate(_ONE_KIND, _NO_STRUCTURE)
    brackets = b"".join(structure.split(b'"')[::2])
    shallow = brackets
    for _level in range(min(8, max_depth)):  # takes the innermost pairs away, level by level
        shallow = shallow.replace(b"[]", b"")
    if not shallow:
        return False
    return max(accumulate(map(_STEP.__getitem__, brackets))) > max_depth


__all__ = ["StrictJSONError", "dumps", "loads"]
