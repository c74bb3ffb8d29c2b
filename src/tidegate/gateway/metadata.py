"""Where may a client get a token for this gateway?

Lives here: the documents of RFC 9728 (protected resource metadata), one for each audience that is
an address, and their paths. Public by design: they are what somebody without a token reads first.
Does not live here: which tokens are accepted (identify), who may do what.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate import strictjson
from tidegate.errors import NotFound
from tidegate.gateway.respond import Receive, Responder, Scope
from tidegate.identity.jwt_claims import IssuerSettings

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_RESOURCE = re.compile(
    r"(?P<origin>https?://[A-Za-z0-9._~-]+(:[0-9]{1,5})?|https?://\[[0-9a-fA-F:.]+\](:[0-9]{1,5})?)"
    r"(?P<path>(/[A-Za-z0-9._~%:@!$&'()*+,;=-]*)*)"
)
_CACHED = (b"cache-control", b"public, max-age=300")
_SCOPE_CLAIMS = frozenset({"scope", "scp"})


@dataclass(frozen=True, slots=True)
class ResourceMetadata:
    """The documents by path, and the address of the first one for challenges."""

    documents: Mapping[bytes, bytes] = field(default_factory=dict)
    url: str | None = None

    async def serve(self, scope: Scope, receive: Receive, responder: Responder) -> None:
        """Answer a GET of one of them."""
        del receive
        document = self.documents.get(scope["raw_path"])
        if document is None:
            raise NotFound
        await responder.json(200, document, (_CACHED,))


def metadata_of(
    issuers: Iterable[IssuerSettings], mcp_path: str, roles: Sequence[str]
) -> ResourceMetadata:
    """The documents of these issuers, in order.

    An audience that is no address has none. The first document also stands at the bare path and at
    the one of the MCP endpoint, where clients look when they know no other. `roles` are told as
    scopes where the issuer gives roles as scopes.
    """
    groups: dict[str, list[IssuerSettings]] = {}
    for settings in issuers:
        if _RESOURCE.fullmatch(settings.audience):
            groups.setdefault(settings.audience, []).append(settings)
    documents: dict[bytes, bytes] = {}
    first_url = None
    for audience, group in groups.items():
        match = _RESOURCE.fullmatch(audience)
        if match is None:
            continue
        path = WELL_KNOWN + match["path"].removesuffix("/")
        documents.setdefault(path.encode(), _document(audience, group, roles))
        first_url = first_url or match["origin"] + path
    if documents:
        first = next(iter(documents.values()))
        for path in (WELL_KNOWN, WELL_KNOWN + mcp_path):
            documents.setdefault(path.encode(), first)
    return ResourceMetadata(documents, first_url)


def _document(audience: str, group: list[IssuerSettings], roles: Sequence[str]) -> bytes:
    members: dict[str, object] = {
        "resource": audience,
        "authorization_servers": [settings.issuer for settings in group],
        "bearer_methods_supported": ["header"],
    }
    if roles and any(settings.roles_claim in _SCOPE_CLAIMS for settings in group):
        members["scopes_supported"] = list(roles)
    return strictjson.dumps(members)


__all__ = ["WELL_KNOWN", "ResourceMetadata", "metadata_of"]
