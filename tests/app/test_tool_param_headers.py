"""May an Mcp-Param header say anything that the arguments do not, or keep what they lost?"""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.federated import Federated, Server
from tests.app.mcp_answers import META
from tests.app.mcp_world import World, call, value
from tests.app.virtual import run_timeless
from tidegate.gateway.masking import Masking
from tidegate.mcp import Rule, RuleSet, compile_condition
from tidegate.mcp.eras import LEGACY, MODERN
from tidegate.mcp.header_values import all_repeat, decode_value, encode_value
from tidegate.redaction import RedactionPolicy

SSN = "-".join(("536", "90", "4399"))
MAIL = "jane@example.com"
CARD = 4_111_111_111_111_111
PRESET = RedactionPolicy.preset()
RULES = RuleSet(
    [
        Rule("deny", "deny", tools=("pay",), when=(compile_condition("amount > 500"),)),
        Rule("allow", "allow"),
    ]
)


def run(body: Any) -> None:
    asyncio.run(body())


def enforcing(policy: RedactionPolicy = PRESET) -> Masking:
    return Masking(policy, tool_arguments="enforce", tool_results="off")


def modern(name: str, arguments: object) -> tuple[Any, dict[str, str]]:
    headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": name}
    return call(name, arguments, _meta=META), headers


def params_of(asked: Any) -> dict[str, str]:
    return {n[10:]: v for n, v in asked.headers.items() if n.startswith("mcp-param-")}


@pytest.mark.parametrize(
    "lie",
    [
        {"mcp_param_amount": "900"},
        {"mcp_param_note": f"ssn {SSN}"},
        {"mcp_param_note": encode_value(f"ssn {SSN}\n")},
        {"mcp_param_amount": "5", "mcp_param_note": MAIL},
        {"mcp_param_note": "=?base64?NQ?="},
    ],
)
def test_a_header_that_says_what_no_argument_does_is_refused(lie: dict[str, str]) -> None:
    async def body() -> None:
        world = World(masking=enforcing(), rules=RULES)
        message, headers = modern("pay", {"amount": 5, "note": "for tea"})
        answer = await world.post(message, **headers, **lie)
        assert answer.status == 400
        assert value(answer) == {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {
                "code": -32020,
                "message": "Header mismatch: an Mcp-Param header says what no argument does",
            },
        }
        assert world.sent == []
        assert world.records.intents == []
        step = world.records.ends[0].snapshot().steps[-1]
        assert (step.stage, step.verdict) == ("headers", "deny")
        assert step.values["code"] == "header_mismatch"
        assert (await world.post(message, **headers, mcp_param_amount="5")).status == 200

    run(body)


def test_a_header_of_a_denied_argument_is_denied_with_it() -> None:
    async def body() -> None:
        world = World(rules=RULES)
        message, headers = modern("pay", {"amount": 900})
        answer = await world.post(message, **headers, mcp_param_amount="900")
        assert value(answer)["error"]["code"] == -32001
        assert world.sent == []

    run(body)


def test_what_is_masked_in_an_argument_is_masked_in_each_of_its_headers() -> None:
    async def body() -> None:
        world = World(masking=enforcing())
        umlaut = f"j\u00e4ne {MAIL}"
        arguments = {
            "to": MAIL,
            "deep": {"er": {"cc": umlaut}},
            "card": CARD,
            "n": 5,
            "dry": True,
            "list": [MAIL],
        }
        message, headers = modern("get_status", arguments)
        said = {
            "to": MAIL,
            "again": MAIL,
            "encoded": "=?base64?amFuZUBleGFtcGxlLmNvbQ==?=",
            "cc": encode_value(umlaut),
            "card": str(CARD),
            "number": f"{CARD}.0",
            "n": "5.0",
            "dry": "true",
        }
        pairs = {f"mcp_param_{name}": header for name, header in said.items()}
        assert (await world.post(message, **headers, **pairs)).status == 200
        [asked] = world.transport.asked
        got = asked.message["params"]["arguments"]
        texts = {name: decode_value(header) for name, header in params_of(asked).items()}
        assert texts["to"] == texts["again"] == texts["encoded"] == got["to"] == "[REDACTED_EMAIL]"
        assert texts["cc"] == got["deep"]["er"]["cc"] == "j\u00e4ne [REDACTED_EMAIL]"
        assert texts["card"] == texts["number"] == got["card"]
        assert (texts["n"], texts["dry"]) == ("5.0", "true")
        assert set(texts) == set(said)
        assert not {MAIL, str(CARD)} & set(asked.headers.values())

    run(body)


def test_a_blocked_argument_is_blocked_whatever_its_header_says() -> None:
    async def body() -> None:
        world = World(masking=enforcing(PRESET.with_actions({"ssn": "block"})))
        message, headers = modern("get_status", {"deep": {"note": f"ssn {SSN}"}})
        for said in ({}, {"mcp_param_note": f"ssn {SSN}"}):
            answer = await world.post(message, **headers, **said)
            assert value(answer)["error"]["code"] == -31004
        assert world.sent == []

    run(body)


@pytest.mark.parametrize("version", [None, *LEGACY])
def test_before_2026_07_28_no_such_header_reaches_a_server(version: str | None) -> None:
    async def body() -> None:
        world = World(masking=enforcing())
        named = {} if version is None else {"mcp_protocol_version": version}
        message = call("get_status", {"amount": 5})
        answer = await world.post(message, mcp_param_amount="5", mcp_param_note=SSN, **named)
        assert answer.status == 200
        [asked] = world.transport.asked
        assert params_of(asked) == {}

    run(body)


def test_of_several_servers_none_gets_a_header_with_a_life_of_its_own() -> None:
    async def body() -> None:
        heads: list[dict[str, str]] = []
        server = Server()
        inner = server.run

        async def keep(asked: Any) -> None:
            heads.append(params_of(asked))
            await inner(asked)

        server.run = keep  # type: ignore[method-assign]
        world = Federated(a=server, b=Server(), masking=enforcing())
        message, headers = modern("a__get_status", {"to": MAIL})
        lie = await world.post(message, **headers, mcp_param_to="joe")
        assert (lie.status, value(lie)["error"]["code"]) == (400, -32020)
        assert (await world.post(message, **headers, mcp_param_to=MAIL)).status == 200
        assert heads == [{"to": "[REDACTED_EMAIL]"}]
        await world.over()

    run_timeless(body())


TEXTS = st.sampled_from(["a", "5", "5.0", "true", "\u00fc", MAIL, f"ssn {SSN}"])
LEAVES = TEXTS | st.sampled_from([5, 5.5, True, None, CARD])
ARGUMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    LEAVES
    | st.lists(LEAVES, max_size=2)
    | st.dictionaries(st.sampled_from(["d", "e"]), LEAVES, max_size=2),
    max_size=3,
)
SAID = st.dictionaries(
    st.sampled_from(["mcp_param_x", "mcp_param_y", "mcp_param_z"]),
    TEXTS.map(encode_value) | st.sampled_from([str(CARD), f"{CARD}.0", "5.00", "5.5"]),
    max_size=2,
)


@settings(max_examples=60, deadline=None)
@given(ARGUMENTS, SAID, st.sampled_from([None, LEGACY[0], MODERN]))
def test_whatever_a_client_sends_a_server_reads_in_a_header_what_it_reads_in_the_body(
    arguments: dict[str, object], said: dict[str, str], version: str | None
) -> None:
    async def body() -> None:
        world = World(masking=enforcing())
        message, headers = modern("get_status", arguments)
        if version != MODERN:
            message = call("get_status", arguments)
            headers = {} if version is None else {"mcp_protocol_version": version}
        answer = await world.post(message, **headers, **said)
        if answer.status == 400:
            assert value(answer)["error"]["code"] == -32020
            assert version == MODERN
            assert not all_repeat(list(said.values()), arguments)
            assert world.sent == []
            return
        assert answer.status == 200
        [asked] = world.transport.asked
        told = params_of(asked)
        assert len(told) == (len(said) if version == MODERN else 0)
        assert all_repeat(list(told.values()), asked.message["params"]["arguments"])
        assert not {MAIL, f"ssn {SSN}", str(CARD), f"{CARD}.0"} & set(told.values())

    run(body)
