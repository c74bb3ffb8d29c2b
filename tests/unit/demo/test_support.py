"""Do the support tools keep the rules of money?"""

import asyncio
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tidegate.demo.support import REPLAYED, SupportStore, support_tools
from tidegate.tools import StrictTool, ToolFailure, ToolResult
from tidegate.tools.strict import InvalidArguments
from tidegate.tools.written import Written

REASON = "parcel never arrived"


@pytest.fixture
def store() -> Iterator[SupportStore]:
    made = SupportStore()
    yield made
    made.close()


@pytest.fixture
def tools(store: SupportStore) -> dict[str, StrictTool[Any]]:
    return {tool.name: tool for tool in support_tools(store)}


def refund(amount: object, *, customer: object = "CUST-10001", reason: object = REASON) -> Any:
    return {"customer_id": customer, "amount": amount, "reason": reason}


def rules(tool: StrictTool[Any], arguments: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidArguments) as caught:
        tool.check(arguments)
    return [(fault.pointer, fault.rule) for fault in caught.value.faults]


def test_a_record_is_found_and_an_unknown_customer_is_a_refusal(
    tools: dict[str, StrictTool[Any]],
) -> None:
    lookup = tools["get_customer_record"]
    assert asyncio.run(lookup({"customer_id": "CUST-10001"})) == {
        "customer_id": "CUST-10001",
        "name": "Jane Doe",
        "email": "jane@example.com",
        "balance": "250.00",
    }
    with pytest.raises(ToolFailure, match="customer not found"):
        asyncio.run(lookup({"customer_id": "CUST-99999"}))


def test_refunds_come_off_the_balance_to_the_cent(tools: dict[str, StrictTool[Any]]) -> None:
    tool = tools["trigger_refund"]
    assert asyncio.run(tool(refund(0.1))).value["balance"] == "249.90"
    assert asyncio.run(tool(refund(0.2))).value["balance"] == "249.70"
    assert asyncio.run(tool(refund(249.7))).value["balance"] == "0.00"
    with pytest.raises(ToolFailure, match="larger than"):
        asyncio.run(tool(refund(0.01)))
    with pytest.raises(ToolFailure, match="not found"):
        asyncio.run(tool(refund(1, customer="CUST-00000")))


@pytest.mark.parametrize("amount", [1, 1.1, 0.01, 10000, 10000.0, 1e2, 2.50, 0.29, 4.35])
def test_amounts_of_up_to_two_places_are_valid(
    amount: float, tools: dict[str, StrictTool[Any]]
) -> None:
    tools["trigger_refund"].check(refund(amount))


@pytest.mark.parametrize(
    ("amount", "rule"),
    [
        (0, "greater_than"),
        (-0.0, "greater_than"),
        (-5, "greater_than"),
        (10000.01, "less_than_equal"),
        (10.005, "value_error"),
        (0.30000000000000004, "value_error"),
        (1e-3, "value_error"),
        (5e-324, "value_error"),
        (float("nan"), "finite_number"),
        (float("inf"), "finite_number"),
        (Written("10000.0000000000001"), "less_than_equal"),
        (Written("1e400"), "less_than_equal"),
        (Written("10." + "0" * 60 + "1"), "value_error"),
        ("50", "number_type"),
        (True, "number_type"),
        (None, "null"),
    ],
)
def test_other_amounts_are_refused_by_name(
    amount: object, rule: str, tools: dict[str, StrictTool[Any]]
) -> None:
    assert rules(tools["trigger_refund"], refund(amount)) == [("/amount", rule)]


@pytest.mark.parametrize(
    "customer",
    [
        "CUST-1234",
        "CUST-123456",
        "cust-12345",
        "CUST-1234a",
        " CUST-12345",
        "CUST-12345\n",
        "CUST-\u0661\u0662\u0663\u0664\u0665",
        "CUST-\uff11\uff12\uff13\uff14\uff15",
        "",
    ],
)
def test_an_odd_customer_id_is_refused_by_schema_and_check(
    customer: str, tools: dict[str, StrictTool[Any]]
) -> None:
    tool = tools["get_customer_record"]
    [(pointer, rule)] = rules(tool, {"customer_id": customer})
    assert pointer == "/customer_id"
    assert rule == ("string_too_long" if len(customer) > 10 else "string_pattern_mismatch")
    assert not jsonschema.Draft202012Validator(tool.schema()).is_valid({"customer_id": customer})


@pytest.mark.parametrize(
    "reason",
    [
        " " * 12,
        "\u00a0" * 12,
        "\u200b" * 12,
        "\u3164" * 12,
        "\u0301" * 12,
        "a b c d e f g h i",
        "short",
        "\t\n" * 8,
    ],
)
def test_a_reason_needs_ten_visible_characters(
    reason: str, tools: dict[str, StrictTool[Any]]
) -> None:
    assert [p for p, _ in rules(tools["trigger_refund"], refund(1, reason=reason))] == ["/reason"]


def test_a_misspelt_argument_is_refused(tools: dict[str, StrictTool[Any]]) -> None:
    arguments = {"customer_id": "CUST-10001", "ammount": 10, "reason": REASON}
    assert rules(tools["trigger_refund"], arguments) == [
        ("/amount", "missing"),
        ("/ammount", "extra_forbidden"),
    ]


def test_a_repeated_call_with_the_same_key_gets_the_first_result_again(
    tools: dict[str, StrictTool[Any]],
) -> None:
    tool, lookup = tools["trigger_refund"], tools["get_customer_record"]
    keyed = refund(12.5) | {"refund_id": "order-7_B"}
    first = asyncio.run(tool(keyed))
    assert asyncio.run(tool(refund(1))).value["balance"] == "236.50"
    # The same sum in another spelling is the same order.
    for amount in (12.5, Written("12.50"), Written("1.25e1")):
        again = asyncio.run(tool(keyed | {"amount": amount}))
        assert isinstance(again, ToolResult)
        assert again == ToolResult(first.value, {REPLAYED: True})
    assert first == ToolResult(
        {"customer_id": "CUST-10001", "refunded": "12.50", "balance": "237.50"}
    )
    assert asyncio.run(lookup({"customer_id": "CUST-10001"}))["balance"] == "236.50"


@pytest.mark.parametrize(
    "other",
    [{"amount": 12.51}, {"customer_id": "CUST-10002"}, {"reason": REASON + "!"}],
)
def test_the_same_key_with_other_arguments_is_refused(
    other: dict[str, Any], tools: dict[str, StrictTool[Any]]
) -> None:
    tool, lookup = tools["trigger_refund"], tools["get_customer_record"]
    keyed = refund(12.5) | {"refund_id": "k"}
    asyncio.run(tool(keyed))
    with pytest.raises(ToolFailure, match="belongs to a refund with other arguments"):
        asyncio.run(tool(keyed | other))
    assert asyncio.run(lookup({"customer_id": "CUST-10001"}))["balance"] == "237.50"
    assert asyncio.run(lookup({"customer_id": "CUST-10002"}))["balance"] == "1200.50"


def test_a_refused_refund_does_not_use_up_its_key(tools: dict[str, StrictTool[Any]]) -> None:
    tool = tools["trigger_refund"]
    for refused in (refund(251), refund(1, customer="CUST-00000")):
        with pytest.raises(ToolFailure):
            asyncio.run(tool(refused | {"refund_id": "k"}))
    done = asyncio.run(tool(refund(250) | {"refund_id": "k"}))
    assert (done.value["balance"], done.meta) == ("0.00", {})


@pytest.mark.parametrize("key", ["a", "Z" * 64, "0_-", "-"])
def test_a_key_has_up_to_64_letters_digits_and_dashes(
    key: str, tools: dict[str, StrictTool[Any]]
) -> None:
    tools["trigger_refund"].check(refund(1) | {"refund_id": key})


@pytest.mark.parametrize("key", ["", "Z" * 65, "a b", "k\n", "\u00e9", "\uff11", "a/b", 7, None])
def test_other_keys_are_refused(key: object, tools: dict[str, StrictTool[Any]]) -> None:
    found = rules(tools["trigger_refund"], refund(1) | {"refund_id": key})
    assert [pointer for pointer, _ in found] == ["/refund_id"]
