"""The same as pass_through.py on the client most Python proxies use, httpx2; same arguments."""

import sys
from functools import cache

import httpx2
import uvicorn

HOP = {b"host", b"connection", b"keep-alive", b"transfer-encoding", b"te", b"upgrade"}


@cache
def client():  # noqa: D103
    return httpx2.AsyncClient(timeout=None)


async def app(scope, receive, send):  # noqa: D103
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    head = [(name, value) for name, value in scope["headers"] if name not in HOP]
    url = f"http://127.0.0.1:{sys.argv[2]}{scope['path']}"
    async with client().stream(scope["method"], url, headers=head, content=body) as answer:
        kept = [(name, value) for name, value in answer.headers.raw if name.lower() not in HOP]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
        async for part in answer.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})


if __name__ == "__main__":
    fast = {"loop": "uvloop", "http": "httptools", "lifespan": "off"}
    quiet = {"log_level": "error", "access_log": False}
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), **fast, **quiet)
