"""Who is calling: by a key, or by a token of an issuer?

Lives here: the order of the two, the one fetch of keys that an unknown key id may cause, and the
answers: 401 with a challenge for a credential that names nobody, 503 when the issuer's keys are
not there to tell. Does not live here: the keys of callers (identity.keys), what makes a token good
(identity.jwt), fetching (identity.jwks), the document for clients (metadata).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.errors import IdentityUnavailable, InvalidRequest, Unauthenticated
from tidegate.gateway.respond import Scope, authorization
from tidegate.identity.jwks import Fetch, FetchFailed, IssuerKeys, TokenKeys
from tidegate.identity.jwt import Claimed, claimed, is_known, verified
from tidegate.identity.jwt_claims import IssuerSettings
from tidegate.identity.jwt_text import TokenRefused, looks_like_token
from tidegate.identity.keys import KeyTable, bearer
from tidegate.policy import Principal
from tidegate.transport.outside import NotFetched, fetch_outside

_MOST_BYTES = 65_536  # any longer header was refused before
_IN_ADDRESS = "Send the token in the Authorization header, not in the address."


@dataclass(frozen=True, slots=True)
class TokenGate:
    """The accepted issuers of one revision, by `iss`.

    `metadata_url` is where clients find out who issues tokens; None when the audience is no URL.
    """

    issuers: Mapping[str, IssuerSettings]
    rings: TokenKeys
    metadata_url: str | None = None

    async def principal(self, credential: bytes) -> Principal:
        """Whom the token names; raises Unauthenticated and IdentityUnavailable."""
        issuer = ""
        try:
            asked = claimed(credential, self.issuers)
            issuer = asked.settings.issuer
            return await self._judged(asked)
        except TokenRefused as refused:
            reason = refused.reason
        raise self.refusal(error="invalid_token", reason=reason, issuer=issuer)

    async def _judged(self, asked: Claimed) -> Principal:
        ring = self.rings.of(asked.settings)
        if ring is None:
            raise IdentityUnavailable("issuer_gone")
        if not is_known(asked.token, ring.keys):
            await ring.refresh()
            self._be_sure(asked, ring)
        now_s = self.rings.clock.now_s()
        return verified(asked, ring.keys, self.rings.algorithms, now_s)

    def _be_sure(self, asked: Claimed, ring: IssuerKeys) -> None:
        """An unknown key is the caller's fault only if we know the keys of today."""
        if not is_known(asked.token, ring.keys) and ring.standing != "fresh":
            raise IdentityUnavailable(f"keys_{ring.standing}")

    def pointed(self, challenge: str) -> str:
        """A challenge for a token of too little scope, with where to get another one."""
        if self.metadata_url is None:
            return challenge
        return f'{challenge}, resource_metadata="{self.metadata_url}"'

    def refusal(self, *, error: str = "", reason: str = "", issuer: str = "") -> Unauthenticated:
        """401 with the challenge of RFC 9728 section 5.1 and RFC 6750 section 3."""
        parts = []
        if self.metadata_url is not None:
            parts.append(f'resource_metadata="{self.metadata_url}"')
        if error:
            parts.append(f'error="{error}"')
        challenge = " ".join(("Bearer", ", ".join(parts))).strip()
        return Unauthenticated(challenge=challenge, reason=reason, issuer=issuer)


async def identify(keys: KeyTable, tokens: TokenGate | None, scope: Scope) -> Principal:
    """The caller of one request; raises Unauthenticated, IdentityUnavailable, InvalidRequest.

    A key is looked up first; a credential that is none and has the form of a token is judged as
    one. Only the Authorization header counts. Without issuers this is `keys.find`.
    """
    values = authorization(scope)
    if tokens is None:
        return keys.find(values)
    # RFC 6750 section 2: one method only. In an address a token ends up in logs of other people.
    if values and b"access_token=" in scope.get("query_string", b""):
        raise InvalidRequest("token in the address", public=_IN_ADDRESS)
    try:
        return keys.find(values)
    except Unauthenticated:
        pass
    credential = bearer(values[0], most_bytes=_MOST_BYTES) if len(values) == 1 else None
    if credential is not None and looks_like_token(credential):
        return await tokens.principal(credential)
    if credential is not None:
        raise tokens.refusal(error="invalid_token", reason="unknown_key_or_form")
    raise tokens.refusal(reason="no_credential" if not values else "header_form")


def fetching() -> Fetch:
    """Fetches key sets from outside."""

    async def fetch(url: str) -> bytes:
        try:
            return await fetch_outside(url)
        except NotFetched as error:
            raise FetchFailed(error.reason) from None

    return fetch


__all__ = ["TokenGate", "fetching", "identify"]
