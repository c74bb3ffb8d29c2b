"""How does a server of both eras become one of a single era?"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from tidegate.mcp.eras import MODERN

App = Callable[[Any, Any, Any], Awaitable[None]]


def only(app: App, era: str) -> App:
    """`app` for messages of one era, `modern` or `legacy`; the other is refused by its headers.

    As servers do it that know nothing else: 400 and -32000 the older ones, 400 and -32022 (405
    for a GET or DELETE) those of 2026-07-28.
    """

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        version = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode()
        if (version == MODERN) == (era == "modern"):
            await app(scope, receive, send)
            return
        error: dict[str, Any] = {"code": -32000, "message": "Bad Request: Unsupported version"}
        if era == "modern":
            data = {"supported": [MODERN], "requested": version}
            error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        status = 405 if era == "modern" and scope["method"] != "POST" else 400
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return serve
