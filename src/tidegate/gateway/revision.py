"""What does one configuration mean for the request paths?

Lives here: the frozen values of one revision, made whole before any of it is in force, so that a
reload either takes everything or nothing. Does not live here: reading the file (config), what
survives a reload (app).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_bytes

from tidegate.config import Config, values
from tidegate.config.policies import Policies, server_redaction
from tidegate.config.sections.redaction import Redaction
from tidegate.gateway.chat import ChatPolicy
from tidegate.gateway.classifier import ClassifierSettings
from tidegate.gateway.identify import TokenGate
from tidegate.gateway.masking import Masking
from tidegate.gateway.metadata import ResourceMetadata, metadata_of
from tidegate.gateway.tool_requests.turn import ToolServer, ToolTrafficPolicy
from tidegate.identity.jwks import TokenKeys
from tidegate.identity.jwt_claims import IssuerSettings
from tidegate.mcp.servers import Place
from tidegate.routing.plan import Route, Target


@dataclass(frozen=True, slots=True)
class Revision:
    """Everything that a reload swaps."""

    config: Config
    chat: ChatPolicy
    tools: ToolTrafficPolicy
    issuers: tuple[IssuerSettings, ...] = ()
    metadata: ResourceMetadata = field(default_factory=ResourceMetadata)

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every target of every route."""
        return tuple(target for route in self.chat.routes.routes for target in route.targets)

    @property
    def tool_places(self) -> tuple[Place, ...]:
        """Where every MCP server is."""
        return tuple(server.place for server in self.tools.servers.values())


def build(
    config: Config, secret: bytes | None = None, *, token_keys: TokenKeys | None = None
) -> Revision:
    """The values of `config`. Raises nothing that a validated configuration could cause.

    `secret` keys the digests that stand in place of values; a random one without it. `token_keys`
    are where the keys of issuers are looked up; without it no token is accepted.
    """
    policies = Policies(config.deny_files, hash_key=secret or token_bytes(32))
    keys = values.key_table(config)
    limits = values.limit_table(config)
    routes = values.route_table(config)
    issuers = values.token_issuers(config)
    metadata = metadata_of(issuers, config.mcp.path, values.allowed_roles(config))
    tokens = _token_gate(issuers, token_keys, metadata)
    return Revision(
        config=config,
        chat=ChatPolicy(
            revision=config.revision,
            keys=keys,
            routes=routes,
            limits=limits,
            providers=values.providers(config),
            masking={route.name: _route_masking(route, policies) for route in routes.routes},
            prices=values.price_table(config),
            tokens=tokens,
        ),
        tools=ToolTrafficPolicy(
            revision=config.revision,
            keys=keys,
            rules=values.tool_rules(config),
            servers=_servers(config, policies),
            limits=limits,
            errors=config.mcp.errors,
            hide_denied=config.mcp.hide_denied,
            tokens=tokens,
        ),
        issuers=issuers,
        metadata=metadata,
    )


def _token_gate(
    issuers: tuple[IssuerSettings, ...], keys: TokenKeys | None, metadata: ResourceMetadata
) -> TokenGate | None:
    if keys is None or not issuers:
        return None
    # The library is loaded here, so that no request ever waits for it.
    keys.warm()
    return TokenGate({each.issuer: each for each in issuers}, keys, metadata.url)


def _servers(config: Config, policies: Policies) -> Mapping[str, ToolServer]:
    return {
        name: ToolServer(
            address,
            _masking(server_redaction(config, name), policies),
            pin=config.mcp.servers[name].pin,
        )
        for name, address in values.mcp_servers(config).items()
    }


def _route_masking(route: Route, policies: Policies) -> Masking:
    section = route.redaction
    if not isinstance(section, Redaction):
        raise TypeError("a route carries its effective redaction")
    return _masking(section, policies)


def _classifier(section: Redaction) -> ClassifierSettings | None:
    given = section.classifier
    if given is None:
        return None
    return ClassifierSettings(given.url, deadline_s=given.deadline_s, late=given.late)


def _masking(section: Redaction, policies: Policies) -> Masking:
    made = policies.of(section)
    # Compiled here, so that a policy that cannot be fails the reload and not a request.
    for policy in (made.everybody, *made.tenants.values()):
        policy.redact("")
    return Masking(
        policy=made.everybody,
        policies=made,
        request=section.request,
        response=section.response,
        tool_arguments=section.tool_arguments,
        tool_results=section.tool_results,
        logprobs=section.logprobs,
        tail_comment=section.tail_comment,
        vault=section.vault,
        classifier=_classifier(section),
    )
