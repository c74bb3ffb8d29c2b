"""What gateway.server expects of uvicorn, so that another version fails here and not in service."""

import asyncio
import inspect
import socket
from importlib.metadata import version

import httptools
from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tests.wire.conftest import Run
from tests.wire.listening import echo, listening


def test_the_version_is_the_one_this_was_written_for() -> None:
    assert version("uvicorn").startswith("0.54.")


def test_the_protocol_is_built_from_these_four() -> None:
    names = list(inspect.signature(HttpToolsProtocol.__init__).parameters)
    assert names == ["self", "config", "server_state", "app_state", "_loop"]
    assert "http" in inspect.signature(Config.__init__).parameters


def test_a_new_protocol_has_the_parts_we_use() -> None:
    async def body() -> None:
        async def app(_scope: object, _receive: object, _send: object) -> None: ...

        config = Config(app, http=HttpToolsProtocol, ws="none", lifespan="off", log_config=None)
        config.load()
        state = ServerState()
        protocol = HttpToolsProtocol(config, state, {}, asyncio.get_running_loop())
        assert (protocol.connections, protocol.tasks) == (state.connections, state.tasks)
        assert isinstance(protocol.parser, httptools.HttpRequestParser)
        assert protocol.loop is asyncio.get_running_loop()
        assert state.total_requests == 0
        # Ours replaces every callback of the parser and of asyncio that touches a request.
        theirs = {name for name in vars(HttpToolsProtocol) if name.startswith("on_")}
        assert theirs == {
            *("on_message_begin", "on_url", "on_header", "on_headers_complete"),
            *("on_body", "on_message_complete", "on_response_complete"),
        }

    asyncio.run(body())


def test_small_events_leave_at_once(run: Run) -> None:
    async def body() -> None:
        async with listening(echo) as scene, await scene.client() as client:
            assert (await client.ask("GET", "/")).status == 200
            (connection,) = scene.listener.connections
            sock = connection.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0

    run(body())


def test_flow_control_pauses_both_ways() -> None:
    parts = set(vars(FlowControl))
    assert {"drain", "pause_reading", "resume_reading", "pause_writing", "resume_writing"} <= parts
    source = inspect.getsource(FlowControl.__init__)
    assert "read_paused" in source
    assert "write_paused" in source
