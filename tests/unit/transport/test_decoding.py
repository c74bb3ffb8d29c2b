"""Content codings of upstreams: every split gives the same bytes, every lie is refused."""

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest

from tidegate.transport.decoding import PIECE_BYTES, DecodeError, decoder_for

TEXT = b'data: {"choices":[{"delta":{"content":"mail bob@example.com"}}]}\n\n' * 3


def bare_deflate(data: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(data) + deflate.flush()


CODINGS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("GZIP", gzip.compress),
    (" identity , gzip ", gzip.compress),
    ("gzip", lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:])),
    ("deflate", zlib.compress),
    ("deflate", bare_deflate),
    ("br", brotli.compress),
]


def decoded(coding: str, *chunks: bytes) -> bytes:
    decoder = decoder_for(coding)
    assert decoder is not None
    out = b"".join(piece for chunk in chunks for piece in decoder.feed(chunk))
    decoder.finish()
    return out


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_every_cut_of_the_body_decodes_to_the_same_bytes(
    coding: str, encode: Callable[[bytes], bytes]
) -> None:
    body = encode(TEXT)
    assert all(decoded(coding, body[:cut], body[cut:]) == TEXT for cut in range(len(body) + 1))
    assert decoded(coding, *(body[at : at + 1] for at in range(len(body)))) == TEXT


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_body_cut_short_is_refused(coding: str, encode: Callable[[bytes], bytes]) -> None:
    body = encode(TEXT)
    whole_member = len(gzip.compress(TEXT[:50])) if body.count(b"\x1f\x8b\x08") == 2 else 0
    for end in set(range(1, len(body))) - {whole_member}:
        with pytest.raises(DecodeError):
            decoded(coding, body[:end])


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
@pytest.mark.parametrize("apart", [True, False])
def test_bytes_after_the_end_are_refused(
    coding: str, encode: Callable[[bytes], bytes], *, apart: bool
) -> None:
    body = encode(TEXT)
    chunks = (body, b"more") if apart else (body + b"more",)
    with pytest.raises(DecodeError):
        decoded(coding, *chunks)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_plain_text_under_a_coding_is_refused(coding: str) -> None:
    with pytest.raises(DecodeError):
        decoded(coding, b'{"error":{"message":"plain"}}')


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_an_empty_body_needs_no_coding(coding: str) -> None:
    assert decoded(coding) == b""
    assert decoded(coding, b"") == b""


@pytest.mark.parametrize("coding", ["", "identity", " Identity ", ",", "identity, identity"])
def test_identity_has_no_decoder(coding: str) -> None:
    assert decoder_for(coding) is None


@pytest.mark.parametrize("coding", ["zstd", "compress", "gzip, br", "gzip, gzip", "aes128gcm", "g"])
def test_an_unknown_or_stacked_coding_is_refused(coding: str) -> None:
    with pytest.raises(DecodeError):
        decoder_for(coding)


@pytest.mark.parametrize(
    ("coding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", brotli.compress)],
)
def test_a_bomb_comes_out_in_bounded_pieces_and_only_when_taken(
    coding: str, encode: Callable[[bytes], bytes]
) -> None:
    bomb = encode(b"\0" * 5_000_000)
    assert len(bomb) < 10_000
    decoder = decoder_for(coding)
    assert decoder is not None
    pieces = decoder.feed(bomb)
    sizes = [len(next(pieces)) for _ in range(3)]
    assert max(sizes) < 2 * PIECE_BYTES
    rest = [len(piece) for piece in pieces]
    assert max(rest) < 2 * PIECE_BYTES
    assert sum(sizes) + sum(rest) == 5_000_000
    decoder.finish()


def test_a_flushed_part_of_a_stream_comes_out_at_once() -> None:
    deflate = zlib.compressobj(wbits=31)
    first = deflate.compress(b"data: 1\n\n") + deflate.flush(zlib.Z_SYNC_FLUSH)
    decoder = decoder_for("gzip")
    assert decoder is not None
    assert b"".join(decoder.feed(first)) == b"data: 1\n\n"


def test_a_piece_that_fills_exactly_ends_the_feeding() -> None:
    assert decoded("gzip", gzip.compress(b"x" * PIECE_BYTES)) == b"x" * PIECE_BYTES
    assert decoded("deflate", zlib.compress(b"x" * PIECE_BYTES * 2)) == b"x" * PIECE_BYTES * 2


def test_one_byte_of_deflate_is_cut_short() -> None:
    with pytest.raises(DecodeError):
        decoded("deflate", b"\x78")
