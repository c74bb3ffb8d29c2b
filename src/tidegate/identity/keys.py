"""Which principal does this key name?

Lives here: the Authorization header and the table of keys, held as digests only. Does not live
here: tokens of an issuer, what a principal may do (mcp.authorize, limits).
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidegate.errors import Unauthenticated
from tidegate.policy import Principal

# A longer header costs hashing time and can be no key of ours.
_MOST_BYTES = 4096
_VISIBLE = re.compile(rb"[!-~]+")


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One key, by the 32 bytes of its SHA-256, and whom it stands for."""

    digest: bytes
    principal: Principal


class KeyTable:
    """All keys of one configuration; immutable, shared by all requests.

    Every refusal is the same Unauthenticated: no credential, another scheme, two headers, a
    wrong key. Keys are random, so one round of SHA-256 is enough: there is nothing to guess
    that a slow hash would slow down.
    """

    def __init__(self, entries: Iterable[KeyEntry], *, anonymous: Principal | None = None) -> None:
        """`anonymous`: who a caller without any Authorization header is; None refuses him.

        Raises ValueError when two entries have the same digest.
        """
        self._entries: dict[bytes, KeyEntry] = {}
        for entry in entries:
            if entry.digest in self._entries:
                raise ValueError("two entries for one key")
            self._entries[entry.digest] = entry
        self._anonymous = anonymous

    def find(self, authorization: Sequence[bytes]) -> Principal:
        """The principal for the values of all Authorization headers of a request.

        Raises Unauthenticated. A header that is there but wrong never falls back to the
        anonymous principal: the caller meant to be somebody.
        """
        if not authorization and self._anonymous is not None:
            return self._anonymous
        if len(authorization) != 1:
            raise Unauthenticated("none or several Authorization headers")
        key = bearer(authorization[0])
        if key is None:
            raise Unauthenticated("not a bearer credential")
        # What the lookup compares is a digest: its timing tells about the SHA-256 of a guess,
        # and nobody can steer that towards the digest of a key.
        digest = hashlib.sha256(key).digest()
        entry = self._entries.get(digest)
        if entry is None or not hmac.compare_digest(entry.digest, digest):
            raise Unauthenticated("unknown key")
        return entry.principal


def bearer(value: bytes, *, most_bytes: int = _MOST_BYTES) -> bytes | None:
    """The key or token in `Bearer KEY`; None for anything else.

    The scheme in any case, one space, and a key of visible ASCII. Servers strip blanks around
    the value already, blanks inside would be read differently by different parties.
    Source: RFC 9110 11.4 (scheme without case), RFC 6750 2.1.
    """
    scheme, space, key = value.partition(b" ")
    if scheme.lower() != b"bearer" or not space or not 0 < len(key) <= most_bytes:
        return None
    return key if _VISIBLE.fullmatch(key) is not None else None


__all__ = ["KeyEntry", "KeyTable", "bearer"]
