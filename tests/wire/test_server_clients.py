"""Clients that leave, stall, crawl or stay: what each of them costs, and whom it holds up."""

import asyncio
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.listening import LATER_S, SOON_S, answer, echo, listening, read_body, seen, turn
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import request_bytes

pytestmark = pytest.mark.full


class Watched:
    """A handler that waits for ever and knows how it ended."""

    def __init__(self, *, streams: bool = False) -> None:
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.says_more = True
        self._streams = streams

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        await read_body(receive)
        try:
            if self._streams:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"one", "more_body": True})
            self.began.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.says_more:
                # What it still sends goes nowhere and hurts nobody.
                await send({"type": "http.response.body", "body": b"late"})
            self.cancelled.set()
            raise


@pytest.mark.parametrize("way", ["close", "reset"])
@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("size", [0, 10, 200_000])
def test_a_client_that_leaves_cancels_its_handler(
    run: Run, way: str, *, streams: bool, size: int
) -> None:
    async def body() -> None:
        app = Watched(streams=streams)
        async with listening(app) as scene, await scene.client() as client:
            await client.send(request_bytes("POST", "/", body=b"x" * size))
            await app.began.wait()
            if way == "close":
                await client.close()
            else:
                client.abort()
            async with asyncio.timeout(WAIT_S):
                await app.cancelled.wait()
            await scene.until(lambda: scene.listener.running == 0)

    run(body())


def test_leaving_in_the_middle_of_the_body_cancels_the_handler(run: Run) -> None:
    async def body() -> None:
        ended: list[str] = []
        began = asyncio.Event()

        async def app(_scope: Any, receive: Any, _send: Any) -> None:
            began.set()
            try:
                ended.append(str(await read_body(receive)))
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        async with listening(app) as scene, await scene.client() as client:
            await client.send(request_bytes("POST", "/", headers=[("Content-Length", "9")]))
            await began.wait()
            await client.send(b"half")
            client.abort()
            await scene.until(lambda: ended == ["cancelled"])

    run(body())


def test_a_handler_that_waits_for_a_slow_reader_is_cancelled_too(run: Run) -> None:
    async def body() -> None:
        app = Flood()
        async with listening(app) as scene:
            client = await scene.client(receive_buffer_bytes=4_096)
            await client.send(request_bytes("GET", "/"))
            await scene.until(lambda: app.waits)
            client.abort()
            await scene.until(lambda: scene.listener.running == 0)
            assert app.ended == "cancelled"

    run(body())


class Flood:
    """Sends for ever, in pieces of 16 kB."""

    def __init__(self) -> None:
        self.sent = 0
        self.waits = False
        self.ended = ""

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                piece = {"type": "http.response.body", "body": b"x" * 16_384, "more_body": True}
                sending = asyncio.ensure_future(send(piece))
                await turn()
                await turn()
                self.waits = not sending.done()
                await sending
                self.sent += 16_384
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise


def test_a_reader_that_reads_nothing_holds_its_sender_not_our_memory(run: Run) -> None:
    async def body() -> None:
        app = Flood()
        async with listening(app) as scene:
            client = await scene.client(receive_buffer_bytes=4_096)
            await client.send(request_bytes("GET", "/"))
            await scene.until(lambda: app.waits)
            (connection,) = scene.listener.connections
            sent = -1
            # What the system holds may grow for a while; then it stands.
            async with asyncio.timeout(WAIT_S):
                while app.sent != sent:
                    sent = app.sent
                    for _ in range(200):
                        await turn()
                        # One piece above the mark of the transport at most, however long it takes.
                        assert connection.transport.get_write_buffer_size() <= 65_536 + 2 * 16_384
            client.abort()

    run(body())


def test_a_reader_that_reads_nothing_is_cut_after_its_time(run: Run) -> None:
    async def body() -> None:
        app = Flood()
        async with listening(app, write_stall_s=SOON_S) as scene:
            client = await scene.client(receive_buffer_bytes=4_096)
            await client.send(request_bytes("GET", "/"))
            await scene.until(lambda: app.ended == "cancelled")
            await scene.until(lambda: not scene.listener.connections)
            client.abort()

    run(body())


def test_a_finished_answer_that_nobody_takes_does_not_keep_the_connection(run: Run) -> None:
    async def body() -> None:
        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await answer(send, b"x" * 8_000_000)

        async with listening(app, write_stall_s=SOON_S) as scene:
            client = await scene.client(receive_buffer_bytes=4_096)
            await client.send(request_bytes("GET", "/", headers=[("Connection", "close")]))
            await scene.until(lambda: not scene.listener.connections)
            client.abort()

    run(body())


def test_a_reader_that_reads_nothing_does_not_hold_up_the_end(run: Run) -> None:
    async def body() -> None:
        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await answer(send, b"x" * 32_000_000)

        async with listening(app) as scene:
            client = await scene.client(receive_buffer_bytes=4_096)
            await client.send(request_bytes("GET", "/"))
            await scene.until(
                lambda: any(
                    link.transport.get_write_buffer_size() for link in scene.listener.connections
                )
            )
            await scene.listener.close(flush_s=SOON_S)
            await scene.until(lambda: not scene.listener.connections)
            client.abort()

    run(body())


def test_a_body_that_nobody_reads_is_held_at_its_mark_until_the_answer(run: Run) -> None:
    async def body() -> None:
        go = asyncio.Event()

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await go.wait()
            await answer(send, b"no")

        caps = {"linger_bytes": 1 << 30, "linger_s": 60.0}
        async with listening(app, **caps) as scene, await scene.client() as client:
            size = 16_000_000
            head = request_bytes("POST", "/", headers=[("Content-Length", str(size))])
            sending = asyncio.ensure_future(client.send(head + b"x" * size))
            await scene.until(
                lambda: any(link.flow.read_paused for link in scene.listener.connections)
            )
            (connection,) = scene.listener.connections
            for _ in range(200):
                await turn()
            assert connection.exchange is not None
            # The mark, and what one read of the loop may bring.
            assert connection.exchange.held_bytes <= 65_536 + 262_144
            assert not sending.done()
            go.set()
            # Who is still sending must come to an end to hear the answer.
            async with asyncio.timeout(WAIT_S):
                await sending
            assert (await client.answer()).body == b"no"

    run(body())


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_that_drips_is_late_although_it_never_stops(run: Run, *, chunked: bool) -> None:
    frame = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 1000000"
    drop = b"1\r\na\r\n" if chunked else b"a"

    async def body() -> None:
        async with (
            listening(echo, body_idle_s=SOON_S) as scene,
            await scene.client() as client,
        ):
            await client.send(b"POST /x HTTP/1.1\r\nHost: a\r\n%b\r\n\r\n" % frame)
            answered = asyncio.create_task(client.answer())
            async with asyncio.timeout(WAIT_S):
                while not (await asyncio.wait((answered,), timeout=SOON_S / 10))[0]:
                    await client.send(drop)
            assert seen(await answered)["body"] == "idle"

    run(body())


def test_two_hundred_slow_clients_do_not_hold_up_a_fast_one(run: Run) -> None:
    async def body() -> None:
        async with listening(echo) as scene:
            slow = [await scene.client() for _ in range(200)]
            for number, client in enumerate(slow):
                half = request_bytes("POST", "/", headers=[("Content-Length", "9")])
                await client.send(half[:20] if number % 2 else half + b"half")
            async with await scene.client() as fast:
                for number in range(20):
                    assert seen(await fast.ask("GET", f"/{number}"))["path"] == f"/{number}"
            assert len(scene.listener.connections) >= 200
            for client in slow:
                client.abort()

    run(body())


def test_a_stop_lets_running_requests_end_and_ends_their_connections(run: Run) -> None:
    async def body() -> None:
        go, began = asyncio.Event(), asyncio.Event()

        async def app(scope: Any, _receive: Any, send: Any) -> None:
            if scope["path"] == "/slow":
                began.set()
                await go.wait()
            await answer(send, b"done")

        async with listening(app) as scene:
            running, idle = await scene.client(), await scene.client()
            await idle.ask("GET", "/fast")
            await running.send(request_bytes("GET", "/slow"))
            await began.wait()
            scene.listener.stop()
            with pytest.raises(ConnectionRefusedError):
                await scene.client()
            # A request on a kept-alive connection may already be on its way.
            answered = await idle.ask("GET", "/fast")
            assert (answered.body, answered.header("connection")) == (b"done", "close")
            assert await idle.rest() == b""
            quiet = asyncio.create_task(scene.listener.quiet())
            go.set()
            answered = await running.answer()
            assert (answered.body, answered.header("connection")) == (b"done", "close")
            await quiet
            for client in (running, idle):
                await client.close()

    run(body())


def test_closing_cancels_what_still_runs_and_says_so_if_nothing_was_sent(run: Run) -> None:
    async def body() -> None:
        silent, streaming = Watched(), Watched(streams=True)
        for app in (silent, streaming):
            app.says_more = False
            async with listening(app) as scene, await scene.client() as client:
                await client.send(request_bytes("GET", "/"))
                await app.began.wait()
                await scene.listener.close()
                rest = await client.rest()
                if app is silent:
                    assert rest.startswith(b"HTTP/1.1 503")
                    assert b"gateway.overloaded" in rest
                else:
                    assert not rest.endswith(b"0\r\n\r\n")

    run(body())


@pytest.mark.full
@pytest.mark.parametrize(
    "late",
    [request_bytes("GET", "/2"), b"\0garbage\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"y" * 40_000],
    ids=["a whole request", "no request", "a head without bounds"],
)
def test_what_comes_after_a_request_does_not_cut_its_answer(run: Run, late: bytes) -> None:
    async def body() -> None:
        began, go = asyncio.Event(), asyncio.Event()

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            began.set()
            await go.wait()
            await answer(send, b"whole")

        async with (
            listening(app, header_timeout_s=LATER_S) as scene,
            await scene.client() as client,
        ):
            await client.send(request_bytes("GET", "/1"))
            await began.wait()
            await client.send(late)
            # The time of a head is over for a connection that came later.
            assert await scene.raw(b"") == b""
            go.set()
            assert (await client.answer()).body == b"whole"

    run(body())
