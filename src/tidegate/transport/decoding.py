"""Which bytes did the upstream mean, once its content coding is taken off?

gzip, deflate (with or without the zlib wrapper) and br, streamed, in pieces of bounded size, so
that a few bytes can never become many at once. Pure: bytes in, bytes out. Does not live here:
sockets, the bound on a whole message (back-pressure and the pipeline have it).
"""

import zlib
from collections.abc import Iterator
from typing import Protocol

import brotli  # type: ignore[import-untyped]

PIECE_BYTES = 65_536
"""No piece is larger, give or take what brotli adds (less than twice)."""


class DecodeError(ValueError):
    """An unknown coding, broken data, data after the end, or an end that never came."""


class Decoder(Protocol):
    """Takes one coding off a body."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` decodes to, in non-empty pieces; exhaust it before feeding again.

        Work happens piece by piece: a consumer that stops taking stops the decoding. Raises
        DecodeError.
        """

    def finish(self) -> None:
        """Check that the coding ended where the body did; raises DecodeError."""


def decoder_for(content_encoding: str) -> Decoder | None:
    """The decoder for a Content-Encoding value; None when there is nothing to take off.

    One coding only: nobody stacks them honestly. Raises DecodeError for anything else.
    Source: RFC 9110 section 8.4.1 (names are case-insensitive, x-gzip equals gzip).
    """
    codings = [name for part in content_encoding.split(",") if (name := part.strip().lower())]
    match [name for name in codings if name != "identity"]:
        case []:
            return None
        case ["gzip" | "x-gzip"]:
            return _Zlib(_GZIP)
        case ["deflate"]:
            return _Deflate()
        case ["br"]:
            return _Brotli()
        case _:
            raise DecodeError("unknown content coding")


_GZIP = 16 + zlib.MAX_WBITS
_WRAPPED = zlib.MAX_WBITS
_BARE = -zlib.MAX_WBITS


class _Zlib:
    """One zlib format; gzip may consist of several members (RFC 1952 section 2.2)."""

    def __init__(self, window_bits: int) -> None:
        self._window_bits = window_bits
        self._inflate = zlib.decompressobj(window_bits)
        self._started = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._started = self._started or bool(data)
        while True:
            if self._inflate.eof and data:
                if self._window_bits != _GZIP:
                    raise DecodeError("data after the end")
                self._inflate = zlib.decompressobj(self._window_bits)
            try:
                piece = self._inflate.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise DecodeError("broken data") from error
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            if piece:
                yield piece
            # A full piece may have left more inside, even when all input was taken.
            if not data and len(piece) < PIECE_BYTES:
                return

    def finish(self) -> None:
        # An empty body carries its coding in name only (HEAD, 204, an empty answer).
        if self._started and not self._inflate.eof:
            raise DecodeError("cut short")


class _Deflate:
    """`deflate` as it is met: with the zlib wrapper of RFC 9110, or bare as old servers send."""

    def __init__(self) -> None:
        self._inner: _Zlib | None = None
        self._first = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inner is None:
            self._first += data
            if len(self._first) < 2:
                return
            data, self._first = self._first, b""
            # RFC 1950: method 8 in the low bits, and the two bytes divide by 31.
            wrapped = data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._inner = _Zlib(_WRAPPED if wrapped else _BARE)
        yield from self._inner.feed(data)

    def finish(self) -> None:
        if self._inner is not None:
            self._inner.finish()
        elif self._first:
            raise DecodeError("cut short")


class _Brotli:
    def __init__(self) -> None:
        self._inflate = brotli.Decompressor()
        self._started = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._started = self._started or bool(data)
        full = False
        while data or full or not self._inflate.can_accept_more_data():
            try:
                piece: bytes = self._inflate.process(data, output_buffer_limit=PIECE_BYTES)
            except brotli.error as error:
                raise DecodeError("broken data") from error
            data = b""
            # "Can accept more" speaks of input: a full piece may have left output inside.
            full = len(piece) >= PIECE_BYTES and not self._inflate.is_finished()
            if piece:
                yield piece

    def finish(self) -> None:
        if self._started and not self._inflate.is_finished():
            raise DecodeError("cut short")
