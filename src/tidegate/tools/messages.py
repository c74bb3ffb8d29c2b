"""Which messages does the body of a POST to a tool server hold?

Lives here: the strict parse that keeps numbers as they were written, and where a number that no
float can hold may stand: in the arguments of a tool, whose own rules refuse it with the id of the
call. Does not live here: lines (stdio), what JSON-RPC is (jsonrpc), HTTP.
"""

import asyncio
from collections.abc import Mapping
from math import isinf
from typing import Final

from tidegate import strictjson
from tidegate.jsonrpc import Batch, Malformed, Message, Request, classify
from tidegate.tools.written import Written

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_BESIDE_THE_LOOP_BYTES: Final = 256 * 1024


class BadMessage(ValueError):
    """A body that is no message: `code` is the JSON-RPC error, `reason` our constant phrase."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


async def read_body(data: bytes) -> Message | Batch | Malformed:
    """The message or batch in `data`; raises BadMessage. Large ones are parsed in a thread."""
    if len(data) > _BESIDE_THE_LOOP_BYTES:
        return await asyncio.to_thread(read_message, data)
    return read_message(data)


def read_message(data: bytes) -> Message | Batch | Malformed:
    """As read_body. Numbers with a fraction or an exponent are Written."""
    infinite: list[Written] = []

    def real(literal: str) -> Written:
        number = Written(literal)
        if isinf(number):
            infinite.append(number)
        return number

    try:
        message = classify(strictjson.loads(data, real=real))
    except strictjson.StrictJSONError as error:
        code = PARSE_ERROR if error.kind == "syntax" else INVALID_REQUEST
        raise BadMessage(code, error.reason) from None
    if infinite and len(infinite) != infinite_in(_arguments(message)):
        raise BadMessage(PARSE_ERROR, "a number is too large")
    return message


def infinite_in(node: object) -> int:
    """How many infinite numbers a tree of JSON holds; as deep as the strict parser lets it be."""
    if isinstance(node, Mapping):
        return sum(map(infinite_in, node.values()))
    if isinstance(node, list):
        return sum(map(infinite_in, node))
    return isinstance(node, float) and isinf(node)


def _arguments(message: Message | Batch | Malformed) -> object:
    if not isinstance(message, Request) or message.method != "tools/call":
        return None
    return (message.params or {}).get("arguments")


__all__ = ["BadMessage", "infinite_in", "read_body", "read_message"]
