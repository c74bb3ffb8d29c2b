"""Which tools exist, and who may call them?

Lives here: the MCP part: servers and rules.
"""

from typing import Literal

from pydantic import Field

from tidegate.config.sections.redaction import Redaction
from tidegate.config.shapes import (
    AnyGlob,
    Glob,
    HeaderValue,
    HttpUrl,
    Name,
    Section,
    Token,
    UrlPath,
    one_of,
)


class McpServer(Section):
    """One MCP server behind the gateway: by address, or as a command over stdio."""

    model_config = one_of("url", "command")

    url: HttpUrl | None = Field(
        default=None, repr=False, description="Address of its MCP endpoint."
    )
    credential: Token | None = Field(
        default=None,
        description="Our own bearer token for it; a caller's token is never forwarded.",
    )
    command: tuple[str, ...] = Field(
        default=(),
        description="Program and arguments, for stdio; run without a shell when first needed. "
        "Needs `server.workers: 1`.",
    )
    env: dict[str, HeaderValue] = Field(
        default_factory=dict,
        description="Environment of the command, beside our PATH and LANG=C.UTF-8; nothing else "
        "is inherited.",
    )
    cwd: str | None = Field(
        default=None,
        min_length=1,
        description="Directory of the command; without it the one we run in. "
        "A relative path begins at the folder of this file.",
    )
    pin: Literal["off", "warn", "block"] = Field(
        default="warn",
        description="What happens to a tool whose definition is not the approved one: nothing, "
        "a line of the log and a step of the record, or it is hidden and its calls are refused "
        "until `tidegate mcp pins approve`.",
    )
    redaction: Redaction = Field(
        default_factory=Redaction, description="Overrides of `redaction` for this server."
    )


class Allow(Section):
    """What an allow rule covers. Roles, tenants or servers missing: any of them.

    Of tools, resources and prompts only the named kinds are covered; all three missing: all.
    """

    roles: tuple[Glob, ...] | None = Field(
        default=None, min_length=1, description="Patterns of roles."
    )
    tenants: tuple[Glob, ...] | None = Field(
        default=None, min_length=1, description="... of tenants."
    )
    servers: tuple[Glob, ...] | None = Field(
        default=None, min_length=1, description="... of servers."
    )
    tools: tuple[AnyGlob, ...] | None = Field(
        default=None, description="... of tool names, as their server has them."
    )
    resources: tuple[AnyGlob, ...] | None = Field(
        default=None, description="... of resource URIs, as their server has them."
    )
    prompts: tuple[AnyGlob, ...] | None = Field(
        default=None, description="... of prompt names, as their server has them."
    )
    when: tuple[str, ...] = Field(
        default=(),
        description="Conditions on the arguments of tools and prompts, all of which must hold: "
        "amount <= 500",
    )


class Deny(Allow):
    """What a deny rule covers, and whom it spares."""

    unless_roles: tuple[Glob, ...] = Field(
        default=(), description="Callers with one of these are spared."
    )


class Rule(Section):
    """One rule: either `allow` or `deny`. Order does not matter; deny beats allow."""

    model_config = one_of("allow", "deny")

    allow: Allow | None = Field(default=None, description="Let matching messages pass.")
    deny: Deny | None = Field(default=None, description="Refuse matching messages.")


class Mcp(Section):
    """The MCP gateway."""

    path: UrlPath = Field(default="/mcp", description="Where clients find it.")
    errors: Literal["brief", "spec"] = Field(
        default="brief", description="Form of denials and errors."
    )
    hide_denied: Literal["off", "list", "full"] = Field(
        default="full",
        description="Denied names: shown, left out of lists, or answered like unknown ones, which "
        "needs servers that list their tools. "
        "The variable HIDE_ADMIN_TOOLS=1 raises off to list and never lowers full.",
    )
    servers: dict[Name, McpServer] = Field(
        default_factory=dict,
        description="MCP servers by name. Of several, clients see `name__tool` and `name+uri`.",
    )
    rules: tuple[Rule, ...] = Field(default=(), description="Nothing matching means denied.")
    rules_dir: str | None = Field(
        default=None,
        min_length=1,
        description="Directory with one file a tenant, `<tenant>.yaml`, that holds `rules:` "
        "for that tenant alone, beside `mcp.rules`. "
        "A relative path begins at the folder of this file.",
    )
