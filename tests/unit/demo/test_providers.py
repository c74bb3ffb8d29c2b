"""Can each behavior of the demo providers be ordered, counted and read off, and does it fail so?"""

import asyncio
import json
from typing import Any

import pytest

from tests.unit.demo.chat import chat, texts, until
from tidegate.demo.faults import FAULTS, GROUPS, OPTIONS
from tidegate.demo.faults_act import USAGE
from tidegate.demo.leaks import LEAKS
from tidegate.demo.providers import NAMES, Providers, Switch
from tidegate.testing.asgi import ASGIClient

pytestmark = pytest.mark.full

HELP = "How may I help you today?"
CHAT = {name: f"/{name}/v1/chat/completions" for name in NAMES}
ERRORS = [one.name for one in GROUPS["Errors"] if one.name not in ("flap", "slow-error")]
SOCKETS = frozenset(one.name for one in GROUPS["Connections"])
ENDLESS = ("hang", "no-accept", "head-only", "role-only", "stall", "dribble", "slow-error")


def asked(setting: str, **fields: Any) -> Any:
    """The finished answer of the primary to one request, after this `/_set`."""

    async def body() -> Any:
        client = ASGIClient(Providers())
        assert (await client.request("POST", f"/_set?provider=primary&{setting}")).status == 200
        return await chat(client, CHAT["primary"], fields)

    return asyncio.run(body())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stream", [False, True])
def test_ok_answers_under_its_own_name(name: str, *, stream: bool) -> None:
    async def body() -> None:
        client = ASGIClient(Providers())
        answer = await chat(client, CHAT[name], {"stream": stream, "n": 2})
        assert answer.status == 200
        if stream:
            assert texts(answer.body) == dict.fromkeys((0, 1), f"Hello from {name}. " + HELP)
        else:
            parsed = json.loads(answer.body)
            assert [c["message"]["content"] for c in parsed["choices"]] == [
                f"Hello from {name}. " + HELP
            ] * 2
            assert parsed["usage"]["total_tokens"] == 43

    asyncio.run(body())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_their_status_and_a_leaky_body(name: str, *, stream: bool) -> None:
    answer = asked(f"behaviour={name}", stream=stream)
    usual = {"insufficient-quota": 429, "low-credit": 400, "context-length": 400, "status": 500}
    status = usual.get(name, 400 if name == "content-filter" else None)
    assert answer.status == (status or int(name[:3]))
    assert any(leak.encode() in answer.body for leak in LEAKS)
    # Without a word about when: how long a target then cools is the gateway's own setting.
    assert answer.header("retry-after") == ("2" if name == "429-retry-after" else None)


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in SOCKETS])
def test_every_answer_names_hosts_and_a_key_in_its_head(name: str) -> None:
    async def body() -> None:
        client = ASGIClient(Providers())
        await client.request("POST", f"/_set?provider=backup&behaviour={name}&wait=0.001")
        async with client.exchange("POST", CHAT["backup"], body=b'{"stream":true}') as exchange:
            if name in ("hang", "no-accept"):
                await until(lambda: exchange._task is not None)
                return
            await exchange.head()
        shown = repr(exchange.headers)
        assert [leak for leak in LEAKS if leak not in shown] == []

    asyncio.run(body())


@pytest.mark.parametrize("name", sorted(SOCKETS))
def test_what_needs_a_socket_says_so_where_there_is_none(name: str) -> None:
    assert asked(f"behaviour={name}").status == 501


@pytest.mark.parametrize("stream", [False, True])
def test_malformed_is_a_success_that_no_parser_reads(*, stream: bool) -> None:
    answer = asked("behaviour=malformed", stream=stream)
    assert answer.status == 200
    assert b"<html>" in answer.body


def test_cut_ends_in_the_middle_of_the_text() -> None:
    streamed = asked("behaviour=cut", stream=True)
    assert texts(streamed.body)[0] == "Hello from primary. How"
    assert b"[DONE]" not in streamed.body
    with pytest.raises(json.JSONDecodeError):
        json.loads(asked("behaviour=cut").body)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", [*ENDLESS, "slow", "slow-first-token", "trickle"])
def test_who_leaves_before_the_end_is_counted(name: str, *, stream: bool) -> None:
    async def body() -> None:
        providers = Providers()
        providers.set("primary", name)
        client = ASGIClient(providers)
        request = json.dumps({"stream": stream}).encode()
        async with client.exchange("POST", CHAT["primary"], body=request) as exchange:
            await until(lambda: providers.calls["primary"] == 1)
            exchange._incoming.put_nowait({"type": "http.disconnect"})
            await until(lambda: providers.gone["primary"] == 1)
            if name in ("hang", "no-accept", "slow"):
                assert exchange.status == 0

    asyncio.run(body())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["slow", "slow-first-token", "trickle"])
def test_what_is_only_slow_answers_in_the_end(name: str, *, stream: bool) -> None:
    answer = asked(f"behaviour={name}&wait=0.001", stream=stream)
    text = texts(answer.body)[0] if stream else json.loads(answer.body)["choices"][0]["message"]
    assert HELP in str(text)


@pytest.mark.parametrize(("stream", "drop"), [(True, b": still thinking"), (False, b" ")])
def test_dribble_sends_bytes_and_never_an_answer(*, stream: bool, drop: bytes) -> None:
    async def body() -> None:
        client = ASGIClient(Providers())
        await client.request("POST", "/_set?provider=primary&behaviour=dribble&wait=0.001")
        request = json.dumps({"stream": stream}).encode()
        async with client.exchange("POST", CHAT["primary"], body=request) as exchange:
            assert await exchange.head() == 200
            assert all([(await exchange.chunk()).startswith(drop) for _ in range(3)])

    asyncio.run(body())


@pytest.mark.parametrize("name", ["comments", "odd-framing", "no-done", "no-finish", "late-usage"])
def test_oddly_written_answers_hold_the_whole_text(name: str) -> None:
    answer = asked(f"behaviour={name}", stream=True, n=2)
    body = answer.body.replace(b"event: ping\ndata: {}\n\n", b"")
    body = body.replace(json.dumps({**_usage()}, separators=(",", ":")).encode(), b"[DONE]")
    assert texts(body) == dict.fromkeys((0, 1), f"Hello from primary. {HELP}")
    assert (b"[DONE]" in answer.body) == (name != "no-done")


def _usage() -> dict[str, Any]:
    return {
        "id": "chatcmpl-demo",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "primary",
        "choices": [],
        "usage": USAGE,
    }


def test_other_form_answers_a_stream_with_a_document_and_the_other_way_round() -> None:
    assert json.loads(asked("behaviour=other-form", stream=True).body)["object"]
    assert HELP in texts(asked("behaviour=other-form").body)[0]


@pytest.mark.parametrize("stream", [False, True])
def test_no_prefill_refuses_only_an_assistant_that_comes_last(*, stream: bool) -> None:
    user, assistant = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    setting = "behaviour=no-prefill"
    assert asked(setting, stream=stream, messages=[assistant, user]).status == 200
    assert asked(setting, stream=stream, messages=[user, assistant]).status == 400
    assert asked(setting, stream=stream).status == 200


def statuses(setting: str, count: int) -> list[int]:
    async def body() -> list[int]:
        client = ASGIClient(Providers())
        await client.request("POST", f"/_set?provider=primary&{setting}")
        return [(await chat(client, CHAT["primary"], {})).status for _ in range(count)]

    return asyncio.run(body())


@pytest.mark.parametrize(
    ("setting", "seen"),
    [
        ("behaviour=500", [500, 500, 500, 500, 500]),
        ("behaviour=500&times=2", [500, 500, 200, 200, 200]),
        ("behaviour=500,429,503", [500, 429, 503, 200, 200]),
        ("behaviour=500,ok,429&times=1", [500, 200, 429, 200, 200]),
        ("behaviour=429,400&times=2", [429, 429, 400, 400, 200]),
        ("behaviour=flap&times=2", [503, 503, 200, 200, 503]),
        ("behaviour=flap", [503, 503, 503, 200, 200]),
        ("behaviour=status&status=418", [418, 418, 418, 418, 418]),
    ],
)
def test_a_behavior_lasts_as_long_as_it_was_ordered_for(setting: str, seen: list[int]) -> None:
    assert statuses(setting, len(seen)) == seen


def test_what_is_left_of_an_order_counts_down_and_ends_with_ok() -> None:
    switch = Switch(("500", "429"), times=2)
    told = []
    for _ in range(5):
        told.append((switch.name, switch.left))
        switch.next()
    assert told == [("500", 4), ("500", 3), ("429", 2), ("429", 1), ("ok", 0)]


def test_state_shows_behaviors_and_counts() -> None:
    async def body() -> None:
        client = ASGIClient(Providers())
        await chat(client, CHAT["backup"], {})
        await client.request("POST", "/_set?provider=primary&behaviour=500")
        state = json.loads((await client.request("GET", "/_state")).body)
        assert state == {
            "primary": {"behaviour": "500", "calls": 0, "gone": 0},
            "backup": {"behaviour": "ok", "calls": 1, "gone": 0},
        }
        await client.request("POST", "/_set?provider=backup&behaviour=500&times=3")
        state = json.loads((await client.request("GET", "/_state")).body)
        assert state["backup"] == {"behaviour": "500", "calls": 1, "gone": 0, "left": 3}

    asyncio.run(body())


@pytest.mark.parametrize(
    "query",
    [
        "",
        "provider=third&behaviour=ok",
        "provider=primary&behaviour=x",
        "provider=primary&behaviour=429,x",
        "provider=primary&behaviour=429&times=0",
        "provider=primary&behaviour=429&times=two",
        "provider=primary&behaviour=slow&wait=-1",
        "provider=primary&behaviour=slow&wait=nan",
        "provider=primary&behaviour=status&status=200",
        "provider=primary&behaviour=429&time=3",
    ],
)
def test_an_unknown_setting_is_refused_with_the_choices(query: str) -> None:
    async def body() -> None:
        providers = Providers()
        answer = await ASGIClient(providers).request("POST", f"/_set?{query}")
        assert answer.status == 400
        assert all(name.encode() in answer.body for name in (*FAULTS, *OPTIONS))
        assert {state["behaviour"] for state in providers.state().values()} == {"ok"}

    asyncio.run(body())


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("behaviour=429-retry-after&form=x", b"rfc3339"),
        ("behaviour=error-first&form=rfc3339", b"problem"),
        ("behaviour=refused&times=2", b"refused"),
        ("behaviour=500,flap", b"flap"),
        ("behaviour=429&times=0", b'"times: a number from 1 to '),
        ("behaviour=slow&wait=x", b'"wait: a number from 0 to '),
        ("behaviour=status&status=200", b'"status: a number from 400 to 599.'),
        ("behaviour=429&time=3", b"there is no 'time'."),
        ("behaviour=42", b'"behaviour: one of'),
    ],
)
def test_a_setting_that_cannot_be_says_why(query: str, word: bytes) -> None:
    async def body() -> None:
        answer = await ASGIClient(Providers()).request("POST", f"/_set?provider=primary&{query}")
        assert answer.status == 400
        assert word in answer.body

    asyncio.run(body())
