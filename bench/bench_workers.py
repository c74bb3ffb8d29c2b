"""How much more do two workers serve than one process?"""

import asyncio
import http.client
import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.gateway import ask, cores, gateway, paired

CONFIG = """
server: {{ admin: {{ port: 0 }}, workers: {workers} }}
identity: {{ anonymous: {{ principal: guest, tenant: demo, roles: [guest] }} }}
limits: [{{ name: much, per: tenant, tokens: 1000000000000, window_s: 60.0 }}]
providers: {{ p: {{ base_url: "http://127.0.0.1:{port}/v1" }} }}
"""
PATH = "/v1/chat/completions"
CLIENTS, SECONDS, ROUNDS = 8, 2.0, 5
# Work for the gateway, which reads all of it, and next to none for those around it.
WORDS = "The quick brown fox jumps over the lazy dog while nobody is looking. " * 500
BODY = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % WORDS.encode()
COMPLETION = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"Fine."},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
)
ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    % len(COMPLETION)
) + COMPLETION


def main() -> None:
    """Print requests a second of both, by turns, and their ratio."""
    ours, theirs = get_context("spawn").Pipe()
    provider = get_context("spawn").Process(target=answer_all, args=(theirs,), daemon=True)
    provider.start()
    port = ours.recv()
    rates: dict[int, list[float]] = {1: [], 2: []}
    with (
        gateway(CONFIG.format(workers=1, port=port)) as one,
        gateway(CONFIG.format(workers=2, port=port)) as two,
    ):
        for process in (one, two):
            rate(process.port, seconds=0.5)
        for _ in range(ROUNDS):
            rates[1].append(rate(one.port))
            rates[2].append(rate(two.port))
    print(f"chat requests of {len(BODY) // 1024} kB a second, {CLIENTS} clients, {cores()}")  # noqa: T201 - a report
    print(paired("two workers, one process", rates[2], rates[1], "/s"))  # noqa: T201 - a report
    provider.terminate()


def rate(port: int, *, seconds: float = SECONDS) -> float:
    """Requests a second that a few clients get answered, each on one connection."""
    counts = [0] * CLIENTS
    end = perf_counter() + seconds

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while perf_counter() < end:
            ask(connection, PATH, BODY)
            counts[number] += 1
        connection.close()

    threads = [Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def answer_all(port: Connection) -> None:
    """A provider that reads a request to its end and always says the same."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**20)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


if __name__ == "__main__":
    main()
