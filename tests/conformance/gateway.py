"""How is the gateway put in front of a server, so that nothing should be noticed of it?

Lives here: `tidegate serve` as a process, with a caller that has one role which may use everything,
the specification's errors, and nothing hidden or pinned; and a hop that loses one member of what a
server says. Does not live here: the server, what is measured.
"""

import json
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.processes import serving
from tests.conformance.fixture import fixture
from tidegate.demo.listener import bind, listening

ROLE = "conformance"
Place = str | Mapping[str, Any]


def configuration(folder: Path, place: Place, *, denied: Sequence[str] = ()) -> str:
    """The file, as JSON, which is YAML. `denied` tools are denied to everybody."""
    server = {"url": place} if isinstance(place, str) else dict(place)
    rules: list[dict[str, Any]] = [{"allow": {"roles": [ROLE]}}]
    if denied:
        rules.append({"deny": {"tools": list(denied)}})
    return json.dumps(
        {
            "server": {"port": 0, "admin": {"port": 0}, "drain_s": 1.0},
            "store": {"url": "memory:"},
            "records": {"path": str(folder / "records.db")},
            # The harness sends no credential, so whoever comes without one has the role.
            "identity": {"anonymous": {"principal": ROLE, "tenant": ROLE, "roles": [ROLE]}},
            "mcp": {
                "errors": "spec",
                "hide_denied": "off",
                "servers": {"backend": {**server, "pin": "off"}},
                "rules": rules,
            },
        }
    )


@asynccontextmanager
async def gateway(place: Place, *, denied: Sequence[str] = ()) -> AsyncIterator[str]:
    """The URL of a gateway in front of a server: at a URL, or as the file says."""
    with tempfile.TemporaryDirectory(prefix="tidegate-conformance-") as name:
        folder = Path(name)
        file = folder / "tidegate.yaml"
        file.write_text(configuration(folder, place, denied=denied))
        async with serving(folder, "--config", str(file)) as process:
            yield f"http://127.0.0.1:{process.port}/mcp"


@asynccontextmanager
async def losing(member: str) -> AsyncIterator[str]:
    """The URL of the fixture, which loses one member of everything it says."""
    app = fixture().http_app()

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        async def lossy(message: Any) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].lower() != b"content-length"]
                message = {**message, "headers": kept}
            elif message.get("body", b"").startswith(b"{"):
                value = _without(json.loads(message["body"]), member)
                message = {**message, "body": json.dumps(value).encode()}
            await send(message)

        await app(scope, receive, lossy)

    async with app.running(), listening(serve, bind(0)) as port:
        yield f"http://127.0.0.1:{port}/mcp"


def _without(value: Any, member: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(each, member) for key, each in value.items() if key != member}
    return [_without(each, member) for each in value] if isinstance(value, list) else value
