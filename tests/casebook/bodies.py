"""How do the words of a variant change the bytes of a body?

`body_encoding`, `body_prefix`, `body_suffix` and a `Content-Encoding` header; everything else in
a variant is a header (or `method`, `path`).
"""

import gzip
import zlib
from typing import Any

import brotli

_NO_HEADERS = frozenset(["body_encoding", "body_prefix", "body_suffix", "method", "path", "body"])


def encoded(text: str, words: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    """The bytes to send and the headers among `words`."""
    text = str(words.get("body", text))
    text = str(words.get("body_prefix", "")) + text + str(words.get("body_suffix", ""))
    data = text.encode(str(words.get("body_encoding", "utf-8")))
    headers = {name: str(value) for name, value in words.items() if name not in _NO_HEADERS}
    coding = next((v for n, v in headers.items() if n.lower() == "content-encoding"), "").lower()
    if coding == "gzip":
        data = gzip.compress(data)
    elif coding == "deflate":
        data = zlib.compress(data)
    elif coding == "br":
        data = brotli.compress(data)
    return data, headers
