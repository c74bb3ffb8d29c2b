"""Do the faults below HTTP reach a client as what they are, and do the doors close and open?"""

import asyncio
import json
import select
import socket
from collections.abc import Awaitable, Callable

import pytest

from tidegate.demo.doors import Doors, own_ports
from tidegate.demo.faults import GROUPS
from tidegate.demo.leaks import HOST
from tidegate.demo.listener import HOST as LOOPBACK
from tidegate.demo.listener import bind, listening
from tidegate.demo.providers import NAMES, Providers
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.sockets import RawClient, request_bytes

CHAT = "/primary/v1/chat/completions"
RESET = "reset"
# How each ends, and what is in the bytes before.
ENDS = {
    "until-close": ("closed", b"HTTP/1.0 200 OK"),
    "refused": (RESET, b""),
    "reset": (RESET, b""),
    "hang-up": ("closed", b""),
    "reset-later": (RESET, b"HTTP/1.1 200 OK"),
    "half-head": ("closed", b"content-ty"),
    "slow-head": ("open", b"x-debug-key: a"),
    "long-head": ("closed", b"aaaa"),
    "no-http": ("closed", b"ESMTP"),
    "bad-frame": ("closed", b"zz\r\n"),
    "short-body": ("closed", b"content-length: 100000"),
    "silent-cut": ("closed", b"HTTP/1.0 200 OK"),
    "bad-coding": ("closed", b"content-encoding: gzip"),
}


def with_providers(body: Callable[[Providers, int], Awaitable[None]]) -> None:
    async def run() -> None:
        providers = Providers()
        async with listening(providers, bind(0)) as port:
            await body(providers, port)

    asyncio.run(run())


async def received(client: RawClient, enough: bytes) -> tuple[str, bytes]:
    """How the connection ended, or "open" once it ends with `enough`; and all that came."""
    came = b""
    async with asyncio.timeout(WAIT_S):
        try:
            while data := await client.reader.read(65_536):
                came += data
                if enough and came.endswith(enough):
                    return "open", came
        except ConnectionError:
            return RESET, came
    return "closed", came


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ENDS)
def test_a_fault_below_http_is_what_it_says(name: str, *, stream: bool) -> None:
    async def body(providers: Providers, port: int) -> None:
        providers.set("primary", name)
        end, wanted = ENDS[name]
        async with await RawClient.connect(LOOPBACK, port) as client:
            asked = json.dumps({"stream": stream}).encode()
            await client.send(request_bytes("POST", CHAT, body=asked))
            ended, came = await received(client, wanted if end == "open" else b"")
        assert ended == end
        assert wanted in came
        assert not wanted or HOST.encode() in came
        assert b"500 Internal Server Error" not in came

    with_providers(body)


def test_every_fault_of_connections_is_in_the_table_of_ends() -> None:
    assert ["early-hints", *ENDS] == [one.name for one in GROUPS["Connections"]]


def test_interim_heads_come_before_the_good_answer() -> None:
    async def body(providers: Providers, port: int) -> None:
        providers.set("primary", "early-hints")
        async with await RawClient.connect(LOOPBACK, port) as client:
            await client.send(request_bytes("POST", CHAT, body=b"{}"))
            assert [(await client.head()).status for _ in range(2)] == [100, 103]
            assert json.loads((await client.answer()).body)["choices"]

    with_providers(body)


def test_a_refused_port_refuses_and_opens_again_on_the_same_number() -> None:
    async def body(providers: Providers, port: int) -> None:
        async def ask(where: int, target: str) -> int:
            async with await RawClient.connect(LOOPBACK, where) as client:
                return (await client.ask("POST", target, body=b"{}")).status

        async with Doors(providers) as doors:
            own = doors.ports["primary"]
            assert await ask(own, "/v1/chat/completions") == 200
            for _ in range(2):
                assert await ask(port, "/_set?provider=primary&behaviour=refused") == 200
                with pytest.raises(ConnectionRefusedError):
                    await ask(own, "/v1/chat/completions")
                assert await ask(doors.ports["backup"], "/v1/chat/completions") == 200
                assert await ask(port, "/_set?provider=primary&behaviour=500") == 200
                assert await ask(own, "/v1/chat/completions") == 500
            assert await ask(own, "/_state") == 404
        with pytest.raises(ConnectionRefusedError):
            await ask(own, "/v1/chat/completions")

    with_providers(body)


def test_a_full_port_takes_no_connection_and_refuses_none() -> None:
    async def body(providers: Providers, port: int) -> None:
        async with Doors(providers) as doors:
            providers.set("primary", "no-accept")
            await doors.follow("primary")
            with socket.socket() as caller:
                caller.setblocking(False)
                caller.connect_ex((LOOPBACK, doors.ports["primary"]))
                # Not there yet, and no error either: a connection is writable, a refused one too.
                assert select.select([], [caller], [], 0.0) == ([], [], [])
            providers.set("primary", "ok")
            await doors.follow("primary")
            async with await RawClient.connect(LOOPBACK, doors.ports["primary"]) as client:
                assert (await client.ask("POST", "/v1/chat/completions", body=b"{}")).status == 200

    with_providers(body)


def test_a_port_that_was_taken_meanwhile_is_said_so() -> None:
    async def body(providers: Providers, port: int) -> None:
        async with Doors(providers) as doors, await RawClient.connect(LOOPBACK, port) as client:
            await client.ask("POST", "/_set?provider=backup&behaviour=refused")
            with socket.create_server((LOOPBACK, doors.ports["backup"])):
                answer = await client.ask("POST", "/_set?provider=backup&behaviour=ok")
                assert answer.status == 409
                assert b"the port of backup" in answer.body
            assert (await client.ask("POST", "/_set?provider=backup&behaviour=ok")).status == 200

    with_providers(body)


def test_the_own_ports_stand_beside_the_shared_one() -> None:
    assert own_ports(9201) == {"primary": 9202, "backup": 9203}
    assert own_ports(65_535) == {}
    assert set(own_ports(1)) == set(NAMES)
