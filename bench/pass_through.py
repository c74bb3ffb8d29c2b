"""What is the least that a proxy does? Run as `pass_through.py PORT UPSTREAM_PORT`."""

import sys
from functools import cache

import aiohttp
import uvicorn

HOP = {b"host", b"connection", b"keep-alive", b"transfer-encoding", b"te", b"upgrade"}


@cache
def session():  # noqa: D103
    return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)


async def app(scope, receive, send):  # noqa: D103
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    head = [(name.decode(), value.decode()) for name, value in scope["headers"] if name not in HOP]
    url = f"http://127.0.0.1:{sys.argv[2]}{scope['path']}"
    async with session().request(scope["method"], url, headers=head, data=body) as answer:
        kept = [(name, value) for name, value in answer.raw_headers if name.lower() not in HOP]
        await send({"type": "http.response.start", "status": answer.status, "headers": kept})
        async for part in answer.content.iter_any():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})


if __name__ == "__main__":
    fast = {"loop": "uvloop", "http": "httptools", "lifespan": "off"}
    quiet = {"log_level": "error", "access_log": False}
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), **fast, **quiet)
