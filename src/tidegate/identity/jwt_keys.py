"""Which keys does an issuer publish, and did one of them make this signature?

Lives here: the key set of an issuer, read strictly, and which kind of key each algorithm takes, so
that none is ever used for another. Does not live here: where the set comes from (jwks), what is
signed (jwt_text). The library behind it is loaded by the first `Algorithms()`, not with this
module: a gateway without issuers never pays for it.
Sources: RFC 7517 (keys), RFC 7518 section 3 (algorithms), RFC 8037 (EdDSA), RFC 8725 section 3.1.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate import strictjson
from tidegate.identity.jwt_text import TokenRefused, TokenText, unpacked

MOST_KEYS = 64
"""Of one set; one with more is refused whole."""

_LEAST_RSA_BITS = 2048
_MOST_RSA_BITS = 8192
_MOST_TEXT = 2048
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
# (kty, crv) -> what such a key may verify. Symmetric keys are not in it: none can be published.
_FITTING: dict[tuple[str, str], tuple[str, ...]] = {
    ("RSA", ""): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("OKP", "Ed448"): ("EdDSA",),
}
_PARTS = {"RSA": ("n", "e"), "EC": ("x", "y"), "OKP": ("x",)}
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})

Verify = Callable[[bytes, Any, bytes], bool]


class BrokenKeySet(ValueError):
    """Not a key set that may be used; the text is a constant phrase of ours."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One public key, and the algorithms it may verify."""

    kid: str | None
    algorithms: tuple[str, ...]
    public: Any = field(repr=False)


class Algorithms:
    """The signature algorithms. Making one loads the library (some 10 MB, 50 ms)."""

    def __init__(self) -> None:
        # Only who has issuers pays for it. The first would be loaded by the first signature.
        from cryptography.hazmat.backends.openssl import backend  # noqa: F401, PLC0415
        from jwt import algorithms  # noqa: PLC0415
        from jwt.exceptions import InvalidKeyError  # noqa: PLC0415

        known = algorithms.get_default_algorithms()
        names = {name for fitting in _FITTING.values() for name in fitting}
        self._verify: dict[str, Verify] = {name: known[name].verify for name in names}
        self._from_jwk: dict[str, Callable[[Any], Any]] = {
            "RSA": algorithms.RSAAlgorithm.from_jwk,
            "EC": algorithms.ECAlgorithm.from_jwk,
            "OKP": algorithms.OKPAlgorithm.from_jwk,
        }
        self._broken: type[Exception] = InvalidKeyError

    def keys(self, document: bytes) -> tuple[SigningKey, ...]:
        """The usable keys of a set; raises BrokenKeySet when there is none, or too many.

        Keys of unknown kinds and for other uses are passed over, as RFC 7517 section 5 wants;
        so are private and symmetric ones, which nobody should publish.
        """
        try:
            value = strictjson.loads(document, max_depth=16)
        except strictjson.StrictJSONError:
            raise BrokenKeySet("not a JSON document") from None
        listed = value.get("keys") if isinstance(value, dict) else None
        if not isinstance(listed, list):
            raise BrokenKeySet("no list of keys")
        if len(listed) > MOST_KEYS:
            raise BrokenKeySet("too many keys")
        found = tuple(key for each in listed if (key := self._key(each)) is not None)
        if not found:
            raise BrokenKeySet("no usable key")
        return found

    def _key(self, jwk: object) -> SigningKey | None:
        if not isinstance(jwk, dict) or not _is_for_verifying(jwk):
            return None
        kty, crv = jwk.get("kty"), jwk.get("crv", "")
        fitting = _FITTING.get((str(kty), str(crv))) if _texts((kty, crv)) else None
        parts = [jwk.get(name) for name in _PARTS.get(str(kty), ())]
        named, kid = jwk.get("alg"), jwk.get("kid")
        if fitting is None or not _texts(parts) or not (kid is None or _texts((kid,))):
            return None
        if named is not None:
            fitting = tuple(name for name in fitting if name == named)
        public = self._public(str(kty), jwk) if fitting else None
        return None if public is None else SigningKey(kid, fitting, public)

    def _public(self, kty: str, jwk: dict[str, object]) -> object | None:
        try:
            for name in _PARTS[kty]:
                unpacked(str(jwk[name]).encode())
            taken = {name: jwk[name] for name in ("kty", "crv", *_PARTS[kty]) if name in jwk}
            public = self._from_jwk[kty](taken)
        except (TokenRefused, ValueError, self._broken):
            return None
        bits = getattr(public, "key_size", 0)
        if kty == "RSA" and not _LEAST_RSA_BITS <= bits <= _MOST_RSA_BITS:
            return None
        return public if public is not None else None

    def signed_by(self, token: TokenText, keys: Iterable[SigningKey]) -> bool:
        """Whether one of `keys` made the signature."""
        verify = self._verify.get(token.algorithm)
        return verify is not None and any(
            token.algorithm in key.algorithms and verify(token.signed, key.public, token.signature)
            for key in keys
        )


def fitting(token: TokenText, keys: Sequence[SigningKey]) -> list[SigningKey]:
    """The keys that may have signed it: of its algorithm's kind, with its key id.

    A token without a key id fits only when one key is in question.
    """
    kind = [key for key in keys if token.algorithm in key.algorithms]
    if token.kid is None:
        return kind if len(kind) == 1 else []
    return [key for key in kind if key.kid == token.kid]


def _is_for_verifying(jwk: dict[str, object]) -> bool:
    operations = jwk.get("key_ops", ["verify"])
    return (
        jwk.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        and not _PRIVATE & jwk.keys()
    )


def _texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) and len(value) <= _MOST_TEXT for value in values)


__all__ = ["MOST_KEYS", "Algorithms", "BrokenKeySet", "SigningKey", "fitting"]
