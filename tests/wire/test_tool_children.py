"""Does a server on stdio serve many clients, whatever else it does with its pipes?

Real processes over real pipes; the server is nasty_tools.
"""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.logged import lines
from tests.wire.stdio_servers import (
    ALICE,
    BOB,
    answer_of,
    asked,
    call,
    children,
    place,
    tool,
    until,
    value_of,
)
from tidegate.gateway.servers.upstream import ServerFailed, ToolTimes
from tidegate.jsonrpc import Notification, Response

pytestmark = pytest.mark.full
LOG = "tidegate.gateway.servers.ch"


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


# What it gets


def test_the_process_gets_its_own_variables_a_path_and_a_locale_and_nothing_else_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "canary")

    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place(env={"OWN": "1"}, cwd=str(tmp_path)))
            found = await call(carrier, "surroundings")
        assert found["env"].pop("LC_CTYPE", "C.UTF-8") == "C.UTF-8"
        assert found["env"] == {"OWN": "1", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        assert found["cwd"] == str(tmp_path)

    run(body())


def test_variables_of_the_file_come_first() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place(env={"PATH": "/nowhere", "LANG": "C"}))
            env = (await call(carrier, "surroundings"))["env"]
        assert (env["PATH"], env["LANG"]) == ("/nowhere", "C")

    run(body())


# Whose answer it is


def test_two_clients_with_the_same_ids_at_once_have_their_own_answers() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            calls = [
                asyncio.ensure_future(call(carrier, "hold", identifier, owner, key=key))
                for key, identifier, owner in (
                    ("alice 1", 1, ALICE),
                    ("bob 1", 1, BOB),
                    ("alice '1'", "1", ALICE),
                    ("bob '1'", "1", BOB),
                )
            ]
            keys = ["bob '1'", "alice 1", "alice '1'", "bob 1"]
            # The lines are in the pipe in the order of the calls once these have begun.
            await call(carrier, "echo", 9)
            await call(carrier, "release", 1, keys=keys)
            assert await asyncio.gather(*calls) == ["alice 1", "bob 1", "alice '1'", "bob '1'"]

    run(body())


def test_a_hundred_calls_at_once_are_all_answered_rightly() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            answers = await asyncio.gather(
                *(call(carrier, "echo", 7, ALICE if n % 2 else BOB, n=n) for n in range(100))
            )
            assert answers == [{"n": n} for n in range(100)]
            assert carrier.generation == 1

    run(body())


def test_a_second_answer_and_one_for_somebody_else_reach_nobody() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            assert await call(carrier, "twice") == "first"
            assert await call(carrier, "for another", 5) == "own"
            assert await call(carrier, "echo", 5, BOB, n=1) == {"n": 1}

    run(body())


def test_progress_reaches_the_client_that_asked_for_it_under_its_own_token() -> None:
    async def progress_of(carrier: Any, owner: Any, token: Any) -> list[Any]:
        message = tool("progress", token=token, steps=3)
        with carrier.exchange(asked(message, owner)) as exchange:
            *before, answer = await answer_of(exchange)
        assert answer["id"] == 1
        assert [each["params"]["progress"] for each in before] == [0, 1, 2]
        return [each["params"]["progressToken"] for each in before]

    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            tokens = await asyncio.gather(
                progress_of(carrier, ALICE, 1), progress_of(carrier, BOB, 1)
            )
            assert tokens == [[1] * 3, [1] * 3]
            assert await progress_of(carrier, ALICE, "1") == ["1"] * 3

    run(body())


def test_an_upstream_id_stands_in_for_the_messages_own_also_if_it_is_nought() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            for upstream_id in (0, "", "x#7", 2**41):
                message = asked(tool("echo", 5), upstream_id=upstream_id)
                with carrier.exchange(message) as exchange:
                    (answer,) = await answer_of(exchange)
                assert answer["id"] == upstream_id

    run(body())


# What it writes


@pytest.mark.parametrize("name", ["junk", "glued"])
def test_junk_disturbs_no_call_and_is_not_in_the_log(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            assert await call(carrier, name) == "done"
            assert await call(carrier, "echo", 1, BOB, n=2) == {"n": 2}

    with caplog.at_level("INFO"):
        run(body())
    said = lines(caplog, LOG)
    assert [r.getMessage() for r in said].count("tool_server_junk") == 1
    (dropped,) = [vars(r) for r in said if r.getMessage() == "tool_server_dropped"]
    assert (dropped["reason"], dropped["dropped"]) == ("junk_lines", 4 if name == "junk" else 1)
    assert "listening" not in str([vars(r) for r in said])


def test_an_answer_that_comes_byte_by_byte_is_one() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            assert await call(all_of_them.carrier(place()), "torn") == "b\u00fcro"

    run(body())


def test_a_line_of_64_mib_is_drained_and_what_follows_it_is_read() -> None:
    async def body() -> None:
        async with children(max_line_bytes=65_536) as all_of_them:
            carrier = all_of_them.carrier(place())
            assert await call(carrier, "long", bytes=64 * 1024 * 1024) == "done"

    run(body())


def test_an_answer_beyond_the_bound_fails_its_call_alone() -> None:
    async def body() -> None:
        async with children(max_line_bytes=65_536) as all_of_them:
            carrier = all_of_them.carrier(place())
            waiting = asyncio.ensure_future(call(carrier, "hold", 1, BOB, key="bob"))
            with pytest.raises(ServerFailed, match="too_large"):
                await call(carrier, "huge", bytes=70_000)
            await call(carrier, "release", keys=["bob"])
            assert await waiting == "bob"
            assert len(await call(carrier, "huge", bytes=60_000)) == 60_000
            assert carrier.generation == 1

    run(body())


def test_a_large_answer_within_the_bound_arrives_whole() -> None:
    async def body() -> None:
        async with children(max_line_bytes=8_388_608) as all_of_them:
            answer = await call(all_of_them.carrier(place()), "huge", bytes=4_000_000)
            assert answer == "x" * 4_000_000

    run(body())


def test_the_server_that_asks_gets_an_answer_at_once_and_the_client_hears_nothing() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            with carrier.exchange(asked(tool("ask"))) as exchange:
                assert [m.get("method") for m in await answer_of(exchange)] == [None]
            told = [m for m in await call(carrier, "seen") if "method" not in m]
        assert [m["id"] for m in told] == ["q0", "q1", "q2"]
        assert told[0]["result"] == {}
        assert [m["error"]["code"] for m in told[1:]] == [-32601, -32601]

    run(body())


def test_what_belongs_to_no_call_goes_to_the_listener() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier, heard = all_of_them.carrier(place()), []
            await call(carrier, "tell")
            carrier.listener = heard.append
            with carrier.exchange(asked(tool("tell"))) as exchange:
                assert len(await answer_of(exchange)) == 1
        assert [message["method"] for message in heard] == ["notifications/tools/list_changed"]

    run(body())


# What it reads


def test_notifications_go_out_and_answers_of_a_client_do_not() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            told = Notification("notifications/initialized")
            for message in (told, Response(1, {"jsonrpc": "2.0", "id": 1, "result": {}})):
                with carrier.exchange(asked(message)) as exchange:
                    assert await exchange.head() == (202, {})
                    assert await exchange.read() is None
            carrier.cast(asked(told))
            seen = await call(carrier, "seen")
        assert [m["method"] for m in seen] == ["notifications/initialized"] * 2 + ["tools/call"]

    run(body())


def test_who_leaves_cancels_the_call_once_under_the_id_that_the_server_knows() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            await call(carrier, "echo")
            with carrier.exchange(asked(tool("hold", "mine", key="a"))) as exchange:
                await exchange.head()
                cancelled = Notification("notifications/cancelled", {"requestId": "mine"})
                carrier.cast(asked(cancelled, BOB))
                carrier.cast(asked(cancelled))
            carrier.cast(asked(cancelled))
            with carrier.exchange(asked(tool("hold", "mine", key="b"))) as exchange:
                await exchange.head()
            *_, third = seen = await call(carrier, "seen")
        told = [m["params"]["requestId"] for m in seen if "id" not in m]
        assert told == [m["id"] for m in seen if m.get("params", {}).get("name") == "hold"]
        assert (len(told), third["params"]["name"]) == (2, "seen")

    run(body())


def test_a_server_that_does_not_read_holds_up_nobody_but_its_own_calls() -> None:
    async def body() -> None:
        async with children(times=ToolTimes(idle_s=6.0)) as all_of_them:
            deaf = all_of_them.carrier(place())
            other = all_of_them.carrier(place("--wait", "/"))
            await call(deaf, "deaf")
            stuck = [
                asyncio.ensure_future(call(deaf, "echo", n, text="x" * 1_000_000))
                for n in range(12)
            ]
            await asyncio.wait(stuck, return_when=asyncio.FIRST_COMPLETED)
            assert await call(other, "echo", n=1) == {"n": 1}
            reasons = [str(e) for e in await asyncio.gather(*stuck, return_exceptions=True)]
            assert set(reasons) == {"busy", "timeout"}
            assert reasons.count("busy") >= 3

    run(body())


def test_a_server_that_reads_nothing_for_as_long_as_any_call_may_run_is_started_anew() -> None:
    async def body() -> None:
        async with children(times=ToolTimes(total_s=4.0)) as all_of_them:
            carrier = all_of_them.carrier(place())
            await carrier.start()
            await call(carrier, "deaf")
            with pytest.raises(ServerFailed, match=r"timeout|crashed"):
                await call(carrier, "echo", 1, text="x" * 1_000_000)
            await until(lambda: carrier.generation == 2)
            await carrier.start()
            assert carrier.generation == 3

    run(body())


def test_a_cut_frees_also_whoever_waits_for_a_server_that_does_not_read() -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place())
            await call(carrier, "deaf")
            stuck = asyncio.ensure_future(call(carrier, "echo", 1, text="x" * 1_000_000))
            silent = asyncio.ensure_future(call(carrier, "echo", 2))
            await asyncio.wait((stuck,), timeout=0.05)
            all_of_them.cut()
            failed = await asyncio.gather(stuck, silent, return_exceptions=True)
            assert [str(e) for e in failed] == ["draining", "draining"]
            with pytest.raises(ServerFailed, match="draining"):
                await call(all_of_them.carrier(place(cwd="/")), "echo")

    run(body())


# Silence


def test_a_server_that_starts_slowly_is_waited_for(tmp_path: Path) -> None:
    async def body() -> None:
        async with children() as all_of_them:
            carrier = all_of_them.carrier(place("--wait", str(tmp_path / "go")))
            calls = [asyncio.ensure_future(call(carrier, "echo", 1, n=n)) for n in range(3)]
            await asyncio.wait(calls, timeout=0.1)
            (tmp_path / "go").touch()
            assert await asyncio.gather(*calls) == [{"n": n} for n in range(3)]
            assert carrier.generation == 1

    run(body())


@pytest.mark.parametrize("times", [ToolTimes(idle_s=0.2), ToolTimes(total_s=0.2)])
def test_one_that_answers_too_late_is_not(times: ToolTimes, tmp_path: Path) -> None:
    async def body() -> None:
        async with children(times=times) as all_of_them:
            carrier = all_of_them.carrier(place("--wait", str(tmp_path / "never")))
            with pytest.raises(ServerFailed, match="timeout"):
                await call(carrier, "echo")

    run(body())


def test_a_subscription_may_be_silent_for_as_long_as_it_likes() -> None:
    async def body() -> None:
        async with children(times=ToolTimes(idle_s=4.0)) as all_of_them:
            carrier = all_of_them.carrier(place())
            message = asked(tool("hold", "s", key="s"), endless=True)
            await carrier.start()
            with carrier.exchange(message) as exchange:
                answers = asyncio.ensure_future(answer_of(exchange))
                await asyncio.wait((answers,), timeout=4.5)
                await call(carrier, "release", keys=["s"])
                assert [value_of(m) for m in await answers] == ["s"]

    run(body())
