"""What does one configuration mean for the request paths?

Lives here: the frozen values of one revision, made whole before any of it is in force, so that a
reload either takes everything or nothing. Does not live here: reading the file (config), what
survives a reload (app).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.config import Config, values
from tidegate.config.sections.redaction import Redaction
from tidegate.gateway.chat import ChatPolicy
from tidegate.gateway.masking import Masking
from tidegate.gateway.tool_call import ToolServer, ToolTrafficPolicy
from tidegate.routing.plan import Route, Target


@dataclass(frozen=True, slots=True)
class Revision:
    """Everything that a reload swaps."""

    config: Config
    chat: ChatPolicy
    tools: ToolTrafficPolicy

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every target of every route."""
        return tuple(target for route in self.chat.routes.routes for target in route.targets)


def build(config: Config) -> Revision:
    """The values of `config`. Raises nothing that a validated configuration could cause."""
    keys = values.key_table(config)
    limits = values.limit_table(config)
    routes = values.route_table(config)
    return Revision(
        config=config,
        chat=ChatPolicy(
            revision=config.revision,
            keys=keys,
            routes=routes,
            limits=limits,
            providers=values.providers(config),
            masking={route.name: _route_masking(route) for route in routes.routes},
            prices=values.price_table(config),
        ),
        tools=ToolTrafficPolicy(
            revision=config.revision,
            keys=keys,
            rules=values.tool_rules(config),
            servers=_servers(config),
            limits=limits,
            errors=config.mcp.errors,
            hide_denied=config.mcp.hide_denied,
        ),
    )


def _servers(config: Config) -> Mapping[str, ToolServer]:
    return {
        name: ToolServer(address, _masking(values.server_redaction(config, name)))
        for name, address in values.mcp_servers(config).items()
    }


def _route_masking(route: Route) -> Masking:
    section = route.redaction
    if not isinstance(section, Redaction):
        raise TypeError("a route carries its effective redaction")
    return _masking(section)


def _masking(section: Redaction) -> Masking:
    policy = values.redaction_policy(section)
    # Compiled here, so that a policy that cannot be fails the reload and not a request.
    policy.redact("")
    return Masking(
        policy=policy,
        request=section.request,
        response=section.response,
        tool_arguments=section.tool_arguments,
        tool_results=section.tool_results,
        logprobs=section.logprobs,
        tail_comment=section.tail_comment,
    )
