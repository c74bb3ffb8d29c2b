"""What does the text of a token say, before anybody believes it?

Lives here: the compact form, read strictly: three parts of base64url without padding or spare
bits, JSON objects without a name that stands twice. Does not live here: whether the signature is
right (jwt_keys), whom the claims name (jwt_claims). Nothing of a token gets into a refusal.
Sources: RFC 7515 sections 3, 4 and 7.1; RFC 8725 (best current practice).
"""

import base64
import binascii
import re
from dataclasses import dataclass, field

from tidegate import strictjson

MOST_BYTES = 8192
"""A longer token is refused unread."""

_FORM = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_MOST_KID = 256
_MOST_DEPTH = 16


class TokenRefused(Exception):
    """A token that names nobody; `reason` is a word of ours for logs and counters."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class TokenText:
    """A token that was read and not believed. Its header names an algorithm and perhaps a key.

    Where the header says to find keys (`jku`, `x5u`, `jwk`, `x5c`) is not even read.
    """

    algorithm: str
    kid: str | None
    issuer: str
    claims: dict[str, object] = field(repr=False)
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)


def looks_like_token(credential: bytes) -> bool:
    """Whether it is made of three parts; then a refusal says what is wrong with them."""
    return credential.count(b".") == 2


def read_token(credential: bytes) -> TokenText:
    """What stands in it; raises TokenRefused. Linear in at most MOST_BYTES."""
    if len(credential) > MOST_BYTES:
        raise TokenRefused("token_too_large")
    if not _FORM.fullmatch(credential):
        raise TokenRefused("token_form")
    signed, _, signature = credential.rpartition(b".")
    head, _, body = signed.partition(b".")
    header, claims = _document(head), _document(body)
    algorithm, kid = _named(header)
    issuer = claims.get("iss")
    if not isinstance(issuer, str):
        raise TokenRefused("issuer")
    return TokenText(algorithm, kid, issuer, claims, signed, unpacked(signature))


def unpacked(part: bytes) -> bytes:
    """The bytes behind base64url; one text for each value. Raises TokenRefused."""
    try:
        data = base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise TokenRefused("token_form") from None
    if base64.urlsafe_b64encode(data).rstrip(b"=") != part:
        raise TokenRefused("token_form")
    return data


def _document(part: bytes) -> dict[str, object]:
    data = unpacked(part)
    try:
        value = strictjson.loads(data, max_depth=_MOST_DEPTH)
    except strictjson.StrictJSONError:
        raise TokenRefused("token_json") from None
    if not isinstance(value, dict):
        raise TokenRefused("token_json")
    return value


def _named(header: dict[str, object]) -> tuple[str, str | None]:
    """The algorithm and the key id of a header that asks for nothing unusual."""
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str):
        raise TokenRefused("algorithm")
    if "crit" in header or "b64" in header:
        raise TokenRefused("critical_header")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise TokenRefused("token_type")
    if "kid" in header and not (isinstance(kid, str) and 0 < len(kid) <= _MOST_KID):
        raise TokenRefused("key_id")
    return algorithm, kid if isinstance(kid, str) else None


__all__ = ["MOST_BYTES", "TokenRefused", "TokenText", "looks_like_token", "read_token", "unpacked"]
