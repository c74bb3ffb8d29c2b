"""A whole gateway on a socket, made from a configuration, in front of upstreams of the test."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.wire.listening import Scene, listening
from tidegate.config import load_config_text
from tidegate.gateway import create_app
from tidegate.gateway.app import Gateway

KEY = "-".join(("key", "of", "the", "tenant"))
VIEWER = "-".join(("key", "of", "the", "viewer"))
CREDENTIAL = "-".join(("credential", "of", "the", "gateway"))
CHAT = "/v1/chat/completions"
JSON = ("Content-Type", "application/json")
KEYED = ("Authorization", f"Bearer {KEY}")


@dataclass
class Served:
    """The gateway, and where it listens."""

    app: Gateway
    scene: Scene

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.scene.port}"

    def metric(self, name: str, **labels: str) -> float:
        """The sum of one counter over the lines with these labels."""
        total = 0.0
        for line in self.app.metrics.render()[1].decode().splitlines():
            if line.startswith((f"tidegate_{name}{{", f"tidegate_{name} ")) and all(
                f'{label}="{value}"' in line for label, value in labels.items()
            ):
                total += float(line.rsplit(" ", 1)[1])
        return total


def config_text(
    folder: Path,
    *,
    primary: str = "http://127.0.0.1:9/v1",
    backup: str = "http://127.0.0.1:9/v1",
    mcp: str = "http://127.0.0.1:9/mcp",
    **parts: Any,
) -> str:
    """A configuration, as JSON, which is YAML. `parts` replace whole sections."""
    text: dict[str, Any] = {
        # On a busy machine a sound store may be late.
        "store": {"url": f"sqlite:///{folder}/limits.db", "wait_s": 30.0},
        "records": {"path": f"{folder}/records.db"},
        "identity": {
            "keys": [
                {"key": KEY, "principal": "acme", "tenant": "acme", "roles": ["tenant"]},
                {"key": VIEWER, "principal": "vera", "tenant": "acme", "roles": ["viewer"]},
            ]
        },
        "limits": [{"name": "tokens-per-minute", "match": {"roles": ["tenant"]}, "tokens": 50000}],
        "providers": {
            "primary": {"base_url": primary, "credentials": [CREDENTIAL]},
            "backup": {"base_url": backup, "credentials": [CREDENTIAL]},
        },
        "routes": [
            {
                "name": "default",
                "candidates": [{"provider": "primary"}, {"provider": "backup"}],
                "cooling": {"on_429_s": 0.0},
                "deadlines": {"first_token_s": 10.0, "idle_s": 20.0},
            }
        ],
        "mcp": {
            "hide_denied": "off",
            "servers": {"backend": {"url": mcp, "credential": CREDENTIAL}},
            "rules": [
                {"deny": {"tools": ["admin_*"], "unless_roles": ["admin"]}},
                {"allow": {"roles": ["viewer", "admin"]}},
            ],
        },
    }
    return json.dumps({**text, **parts})


@asynccontextmanager
async def serving(text: str, **caps: Any) -> AsyncIterator[Served]:
    """The gateway of this configuration on a free port; all it holds is closed with the block."""
    app = create_app(load_config_text(text, {}))
    await app.open()
    try:
        async with listening(app, **caps) as scene:
            yield Served(app, scene)
    finally:
        await app.close()


def chat(**fields: object) -> bytes:
    """The body of a chat request."""
    members: Mapping[str, object] = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 100,
        **fields,
    }
    return json.dumps(members).encode()
