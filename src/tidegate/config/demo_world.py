"""What does the gateway serve when nobody configured anything?

Lives here: the values of the demo world, the only place that names them. The demo world is used
whole without a file or with an empty one; with `demo: true` it fills the parts that the file
leaves out. Does not live here: the programs behind these ports (demo).
"""

from dataclasses import dataclass

from tidegate.config.document import Tree

VIEWER_TOKEN = "viewer-token-xyz"  # noqa: S105 - published with the demo, refused off loopback
ADMIN_TOKEN = "admin-token-abc"  # noqa: S105 - likewise
TENANT_TOKEN = "sk-tenant-acme"  # noqa: S105 - likewise
BACKEND_TOKEN = "demo-backend-token"  # noqa: S105 - what our own demo backend is sent

DEMO_TOKENS = (VIEWER_TOKEN, ADMIN_TOKEN, TENANT_TOKEN)
"""The keys that everybody knows: whoever may reach the gateway could use them."""

PUBLISHED = (*DEMO_TOKENS, BACKEND_TOKEN)
"""Every token that stands in the source."""


@dataclass(frozen=True, slots=True)
class DemoPorts:
    """Where the programs of the demo world listen, on 127.0.0.1."""

    mcp_backend: int = 9001
    leaky_provider: int = 9101
    providers: int = 9201


def demo_world(ports: DemoPorts) -> dict[str, Tree]:
    """The demo world in the shape of the file."""
    return {
        "identity": {
            "keys": (
                {
                    "key": VIEWER_TOKEN,
                    "principal": "viewer",
                    "tenant": "demo",
                    "roles": ("viewer",),
                },
                {"key": ADMIN_TOKEN, "principal": "admin", "tenant": "demo", "roles": ("admin",)},
                {"key": TENANT_TOKEN, "principal": "acme", "tenant": "acme", "roles": ("tenant",)},
            )
        },
        "limits": (
            {
                "name": "tokens-per-minute",
                "match": {"tenants": ("*",), "roles": ("tenant",), "routes": ("*",)},
                "per": "tenant",
                "tokens": 50_000,
                "window_s": 60.0,
            },
        ),
        "providers": _providers(ports),
        "routes": _routes(),
        "mcp": {
            "hide_denied": "off",
            "servers": {
                "backend": {
                    "url": f"http://127.0.0.1:{ports.mcp_backend}/mcp",
                    "credential": BACKEND_TOKEN,
                }
            },
            "rules": (
                {"deny": {"tools": ("admin_*",), "unless_roles": ("admin",)}},
                {"allow": {"roles": ("viewer", "admin")}},
            ),
        },
        "demo": True,
    }


def _providers(ports: DemoPorts) -> dict[str, Tree]:
    pair = f"http://127.0.0.1:{ports.providers}"
    return {
        "primary": {"base_url": f"{pair}/primary/v1"},
        "backup": {"base_url": f"{pair}/backup/v1"},
        "leaky": {"base_url": f"http://127.0.0.1:{ports.leaky_provider}/v1"},
    }


def _routes() -> Tree:
    # No rest after 429, so that flipping the primary shows at once and in both directions.
    cooling: Tree = {"on_429_s": 0.0}
    # Only failures in a row count: who tries out one failure after the other mixes them.
    breaker: Tree = {"consecutive": 5, "min_results": 100}
    return (
        {
            "name": "leaky",
            "model": "leaky*",
            "candidates": ({"provider": "leaky"},),
            "redaction": {"response": "enforce", "tail_comment": True},
        },
        {
            "name": "default",
            "model": "*",
            "candidates": ({"provider": "primary"}, {"provider": "backup"}),
            "deadlines": {"first_token_s": 3.0},
            "cooling": cooling,
            "breaker": breaker,
        },
    )


def fill(tree: dict[str, Tree], world: dict[str, Tree]) -> dict[str, Tree]:
    """`tree` with the parts it leaves out taken from `world`.

    Parts are taken whole: keys, limits, providers, routes, MCP servers, MCP rules, hide_denied.
    Routes of the demo world come only together with its providers.
    """
    filled = dict(tree)
    for name, value in world.items():
        if name == "routes" and tree.get("providers") is not None:
            continue
        mine = filled.get(name)
        if mine is None:
            filled[name] = value
        elif isinstance(mine, dict) and isinstance(value, dict) and name in ("identity", "mcp"):
            given = {key: part for key, part in mine.items() if part is not None}
            filled[name] = {**value, **given}
    return filled
