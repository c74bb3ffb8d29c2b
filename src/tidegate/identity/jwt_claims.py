"""Whom do the claims of a token name, and is that so now?

Lives here: issuer, audience, times, and the claims that become principal, tenant and roles. Does
not live here: the signature (jwt_keys), the text (jwt_text), where settings come from (config).
Sources: RFC 7519 section 4.1; RFC 9068 sections 2.2 and 4; RFC 8725 section 3.
"""

import hashlib
import re
from dataclasses import dataclass

from tidegate.identity.jwt_text import TokenRefused
from tidegate.policy import Principal

# What the file can name: rules, lists and limits must be able to speak of every tenant and role.
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:/+-]{0,127}")
# Subjects of some issuers have a bar, such as `auth0|5f7c8ec7`; nothing in the file names those.
_SUBJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:/+|-]{0,127}")
_MOST_LISTED = 64
_MOST_TEXT = 2048
_MOST_SECONDS = 1e15


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    """One accepted issuer. `leeway_s`: how far clocks may differ."""

    issuer: str
    audience: str
    jwks_url: str
    algorithms: tuple[str, ...]
    principal_claim: str = "sub"
    tenant_claim: str = "tenant"
    roles_claim: str = "roles"
    leeway_s: float = 30.0


def principal_of(claims: dict[str, object], settings: IssuerSettings, now_s: float) -> Principal:
    """The caller; `now_s` is wall time. Raises TokenRefused.

    The claims must have been signed by this issuer. A caller without roles has none; one without
    a principal or a tenant is refused: no default could be right for both.
    """
    if claims.get("iss") != settings.issuer:
        raise TokenRefused("issuer")
    if settings.audience not in _listed(claims.get("aud"), "audience"):
        raise TokenRefused("audience")
    _check_times(claims, settings.leeway_s, now_s)
    client = _client(claims)
    return Principal(
        name=_one(claims.get(settings.principal_claim), "principal_claim", _SUBJECT),
        tenant=_one(claims.get(settings.tenant_claim), "tenant_claim"),
        roles=_roles(claims.get(settings.roles_claim)),
        key_id=hashlib.sha256(f"{settings.issuer}\0{client}".encode()).hexdigest()[:8],
        issuer=settings.issuer,
        client=client,
    )


def _check_times(claims: dict[str, object], leeway_s: float, now_s: float) -> None:
    expires_s = _seconds(claims.get("exp"), "expiry")
    if expires_s is None:
        raise TokenRefused("expiry")
    if now_s >= expires_s + leeway_s:
        raise TokenRefused("expired")
    for claim, reason in (("nbf", "not_yet_valid"), ("iat", "issued_in_future")):
        begins_s = _seconds(claims[claim], reason) if claim in claims else None
        if claim in claims and (begins_s is None or now_s < begins_s - leeway_s):
            raise TokenRefused(reason)


def _seconds(value: object, reason: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(reason)
    if not abs(value) <= _MOST_SECONDS:  # nor is NaN; an integer may be too large for a float
        raise TokenRefused(reason)
    return float(value)


def _one(value: object, reason: str, pattern: re.Pattern[str] = _NAMED) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise TokenRefused(reason)
    return value


def _listed(value: object, reason: str) -> list[str]:
    """One text, or a list of them."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not 0 < len(texts) <= _MOST_LISTED:
        raise TokenRefused(reason)
    if not all(isinstance(text, str) and len(text) <= _MOST_TEXT for text in texts):
        raise TokenRefused(reason)
    return texts


def _roles(value: object) -> tuple[str, ...]:
    """A list of names, or one text of them with blanks between, as `scope` has it."""
    if value is None or value in ([], ""):
        return ()
    names = value.split(" ") if isinstance(value, str) else value
    if not isinstance(names, list) or len(names) > _MOST_LISTED:
        raise TokenRefused("roles_claim")
    return tuple(dict.fromkeys(_one(name, "roles_claim") for name in names))


def _client(claims: dict[str, object]) -> str:
    """The program that the token was issued to, as far as the issuer says so."""
    for claim in ("client_id", "azp"):
        if claim in claims:
            value = claims[claim]
            if not isinstance(value, str) or len(value) > _MOST_TEXT:
                raise TokenRefused("client_claim")
            return value
    return ""


__all__ = ["IssuerSettings", "principal_of"]
