"""Which principal does this token name?

    token text -> strict reading -> one of our issuers -> its algorithms -> its keys
               -> signature -> claims -> Principal, or a refusal with a word for the log

Lives here: that order, as a pure function of values. Does not live here: its steps (jwt_text,
jwt_keys, jwt_claims), fetching keys (jwks), headers and answers (gateway).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.identity.jwt_claims import IssuerSettings, principal_of
from tidegate.identity.jwt_keys import Algorithms, SigningKey, fitting
from tidegate.identity.jwt_text import TokenRefused, TokenText, read_token
from tidegate.policy import Principal


@dataclass(frozen=True, slots=True)
class Claimed:
    """A token that says it is of this issuer, and is signed as this issuer signs."""

    token: TokenText
    settings: IssuerSettings


def claimed(credential: bytes, issuers: Mapping[str, IssuerSettings]) -> Claimed:
    """Who is said to have signed it; raises TokenRefused. Nothing of it is believed yet."""
    token = read_token(credential)
    settings = issuers.get(token.issuer)
    if settings is None:
        raise TokenRefused("unknown_issuer")
    if token.algorithm not in settings.algorithms:
        raise TokenRefused("algorithm")
    return Claimed(token, settings)


def is_known(token: TokenText, keys: Sequence[SigningKey]) -> bool:
    """Whether a key of the issuer may have signed it; if not, its keys may have changed."""
    return bool(fitting(token, keys))


def verified(
    asked: Claimed, keys: Sequence[SigningKey], algorithms: Algorithms, now_s: float
) -> Principal:
    """The principal, by the keys of that issuer alone; raises TokenRefused.

    Cost: one signature, 30 to 150 us.
    """
    candidates = fitting(asked.token, keys)
    if not candidates:
        raise TokenRefused("unknown_key")
    if not algorithms.signed_by(asked.token, candidates):
        raise TokenRefused("signature")
    return principal_of(asked.token.claims, asked.settings, now_s)


__all__ = ["Claimed", "claimed", "is_known", "verified"]
