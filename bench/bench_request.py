"""What does a chat request cost more when it goes through the gateway?"""

import asyncio
import http.client
import sys
from pathlib import Path
from threading import Event, Thread

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.gateway import ask, cores, gateway, paired
from tidegate.demo.leaky_provider import LeakyProvider
from tidegate.demo.listener import HOST, bind, listening, port_of

CONFIG = """
server: {{ admin: {{ port: 0 }} }}
identity: {{ anonymous: {{ principal: guest, tenant: demo, roles: [guest] }} }}
limits: [{{ name: much, per: tenant, tokens: 1000000000, window_s: 60.0 }}]
providers: {{ leaky: {{ base_url: "http://127.0.0.1:{port}/v1" }} }}
"""
PATH = "/v1/chat/completions"
ROUNDS = 300


def main() -> None:
    """Print times through the gateway and straight to the provider, by turns."""
    sock = bind(0)
    port = port_of(sock)
    started, ended = Event(), Event()

    async def upstream() -> None:
        async with listening(LeakyProvider(total_s=0.0), sock):
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = Thread(target=asyncio.run, args=(upstream(),))
    thread.start()
    started.wait()
    try:
        with gateway(CONFIG.format(port=port)) as process:
            print(f"chat requests, median of {ROUNDS}, {cores()}")  # noqa: T201 - a report
            for name, stream in (("whole answer", b"false"), ("stream of 20 events", b"true")):
                through, direct = compare(process.port, port, stream)
                print(paired(name, through, direct))  # noqa: T201 - a report
    finally:
        ended.set()
        thread.join()


def compare(ours: int, provider: int, stream: bytes) -> tuple[list[float], list[float]]:
    """Milliseconds of each request through the gateway, and of each one past it."""
    body = b'{"model":"m","stream":%s,"messages":[{"role":"user","content":"hi"}]}' % stream
    through = http.client.HTTPConnection(HOST, ours)
    direct = http.client.HTTPConnection(HOST, provider)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS + 20):
        pair = ask(through, PATH, body) * 1e3, ask(direct, PATH, body) * 1e3
        if number >= 20:  # the first ones warm both up
            times[0].append(pair[0])
            times[1].append(pair[1])
    through.close()
    direct.close()
    return times


if __name__ == "__main__":
    main()
