"""Rows of (kind, sentence, right observation, wrong observation) for conversations over stdio."""

from typing import Any

from tests.casebook.seen import Seen
from tests.unit.casebook.observations import ping, refund, rpc, talk

Row = tuple[str, str, Seen, Seen]

BAD, PARSE, INVALID, UNKNOWN = -32602, -32700, -32600, -32601
LOOKUP = refund(1, customer_id="CUST-\u0661")
SCHEMA = {
    "name": "trigger_refund",
    "inputSchema": {
        "additionalProperties": False,
        "properties": {"customer_id": {"pattern": r"^CUST-[0-9]{5}$"}},
    },
}
LOOSE = {"name": "trigger_refund", "inputSchema": {"properties": {"customer_id": {"pattern": "."}}}}


def said(identifier: object, text: str) -> dict[str, Any]:
    """A tool's result."""
    return rpc(identifier, result={"content": [{"type": "text", "text": text}]})


def failed(identifier: object, text: str = "no") -> dict[str, Any]:
    """A result that says it is an error."""
    return rpc(identifier, result={"content": [{"type": "text", "text": text}], "isError": True})


OK = talk(rpc(1), rpc(2), sent=[ping(1), ping(2)])
NONE = talk(sent=[ping(1), ping(2)])
AMOUNTS = [
    b'{"id":%d,"method":"x","params":{"amount":%b,"z":0}}' % (at, text)
    for at, text in ((1, b"1.10"), (2, b"0.01"), (3, b"1e2"))
]
NAN = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}'

ROWS: list[Row] = [
    ("stdio", sentence, right, wrong)
    for sentence, right, wrong in [
        (
            "exactly one reply with error code -32700 and id null for the bad line",
            talk(rpc(None, error=PARSE), rpc(2)),
            talk(rpc(2)),
        ),
        ("-32700 with id null for line 1", talk(rpc(None, error=PARSE)), talk(rpc(1, error=PARSE))),
        ("-32602 with id 3", talk(rpc(3, error=BAD)), talk(rpc(None, error=PARSE))),
        (
            "lines 1 and 2: -32700 (id null) or -32602 (own id)",
            talk(rpc(None, error=PARSE), rpc(2, error=BAD), sent=[NAN, ping(2)]),
            talk(rpc(None, error=BAD), rpc(2), sent=[NAN, ping(2)]),
        ),
        ("-32602 (see the note)", talk(rpc(1, error=BAD), rpc(2)), talk(rpc(1, error=UNKNOWN))),
        (
            "an error reply (-32700 with id null, -32600 or -32602), within 1 s",
            talk(rpc(None, error=PARSE)),
            talk(rpc(None, error=PARSE), after_s=9.0),
        ),
        ("ids 1 and 2 are all answered", OK, talk(rpc(1))),
        ("id 2 answered once", OK, talk(rpc(2), rpc(2))),
        (
            "id 1 answered (result, or -32602 if it is too long)",
            talk(rpc(1, error=BAD)),
            talk(rpc(1, error=INVALID)),
        ),
        ("then a normal reply to id 2", OK, talk(rpc(2, error=BAD))),
        ("process still running", OK, talk(rpc(1), running=False)),
        ("no reply and no error for the blank lines", OK, talk(rpc(None, error=PARSE), rpc(1))),
        ("one for each id", OK, talk(rpc(1), rpc(1), sent=[ping(1), ping(2)])),
        ("each the real result", talk(said(1, "x")), talk(failed(1))),
        ('no reply is a "connection closed" error', OK, talk(said(1, "Connection closed"))),
        ("process exits 0 within 5 s", OK, talk(exit_code=1)),
        ("process ends within 2 s", OK, talk(exit_after_s=60.0)),
        ("it used under 0.2 s of CPU while waiting", OK, talk(cpu_s=2.0)),
        ("every line on stdout parses as JSON-RPC 2.0", OK, talk(rpc(1), impure=["noise"])),
        ("nothing but JSON-RPC on stdout", OK, talk(rpc(1), impure=["Traceback"])),
        (
            "a, b and the log line are on stderr",
            talk(stderr="a\nb\nWARNING log line\n"),
            talk(stderr="a\nWARNING log line\n"),
        ),
        (
            "the child saw an empty stdin",
            talk(said(1, "the child saw 0 bytes")),
            talk(said(1, "the child saw 40 bytes")),
        ),
        ("id 3 returns all 5 characters on one line", talk(said(3, "rrrrr")), talk(said(3, "rr"))),
        ("six replies", talk(*(rpc(n) for n in range(6))), OK),
        (
            "id type and value identical to the request, no float rounding",
            talk(rpc("1"), rpc(9007199254740993), sent=[ping("1"), ping(9007199254740993)]),
            talk(rpc(1), rpc(9007199254740992), sent=[ping("1"), ping(9007199254740993)]),
        ),
        ("an array with both replies", OK, talk(rpc(1))),
        ("id 1 gets -32602", talk(rpc(1, error=BAD)), talk(rpc(1))),
        ("no reply to id 1", talk(rpc(2)), OK),
        ("id 1 gets no reply", talk(rpc(2)), OK),
        ("no reply at all", NONE, OK),
        ("result with isError true", talk(failed(1)), talk(said(1, "x"))),
        ("id 1: a result", OK, talk(rpc(1, error=BAD))),
        ("the result", OK, talk(failed(1))),
        ("stderr says boom", talk(stderr="boom"), talk(stderr="quiet")),
        ("refund recorded once", talk(said(1, "x"), refunded="5.00"), OK),
        ("5.00 is refunded", talk(refunded="5.00"), talk(refunded="10.00")),
        (
            "values are not echoed",
            talk(rpc(1, error=BAD), sent=[refund(1, reason="very secret")]),
            talk(
                rpc(1, error=BAD, message="bad: very secret"),
                sent=[refund(1, reason="very secret")],
            ),
        ),
        (
            "the message or data names the field amount and says a number is wanted",
            talk(rpc(1, error=BAD, message="amount: a number")),
            talk(rpc(1, error=BAD, message="amount: bad")),
        ),
        ("each names customer_id", talk(rpc(1, error=BAD, message="customer_id")), talk(rpc(1))),
        ("no refund recorded", OK, talk(refunded="1.00")),
        ("no tool runs", OK, talk(refunded="1.00")),
        (
            "no reply contains the bare words NaN or Infinity as JSON values",
            OK,
            talk({"jsonrpc": "2.0", "id": 1, "result": float("nan")}),
        ),
        (
            "ids 1, 2 refused: fewer than 10 visible characters",
            talk(
                rpc(1, error=BAD, message="at least ten visible characters"),
                rpc(2, error=BAD, message="at least ten visible characters"),
            ),
            talk(rpc(1, error=BAD, message="at least ten visible characters"), rpc(2)),
        ),
        (
            'both refused by the format rule (not "not found")',
            talk(rpc(1, error=BAD, message="pattern")),
            talk(rpc(1, error=BAD, message="customer not found")),
        ),
        (
            "the published JSON Schema pattern refuses them too",
            talk(tools=[SCHEMA], sent=[LOOKUP]),
            talk(tools=[LOOSE], sent=[LOOKUP]),
        ),
        (
            "1.10, 0.01 and 1e2 pass the amount rule (then business rules apply)",
            talk(rpc(1), rpc(2), failed(3), sent=AMOUNTS),
            talk(rpc(1), rpc(2), rpc(3, error=BAD), sent=AMOUNTS),
        ),
        (
            "1.10, 0.01 and 1e2 are refused",
            talk(*(rpc(n, error=BAD) for n in (1, 2, 3)), sent=AMOUNTS),
            talk(rpc(1, error=BAD), rpc(2, error=BAD), rpc(3), sent=AMOUNTS),
        ),
        ("id 4 passes the reason rule", talk(rpc(4)), talk(rpc(4, error=BAD))),
        (
            "id 1 says: wrong type",
            talk(rpc(1, error=BAD, message="should be a valid string")),
            talk(rpc(1, error=BAD, message="Field required")),
        ),
        ("it says: no such field", talk(failed(1, "no such field")), talk(failed(1, "no"))),
        ("missing", talk(rpc(1, error=BAD, message="Field required")), talk(rpc(1, error=BAD))),
        ("only id 2 is answered", talk(rpc(2)), OK),
        (
            "ids 1 and 2: -32602, id 3 result",
            talk(rpc(1, error=BAD), rpc(2, error=BAD), rpc(3)),
            talk(rpc(1, error=BAD), rpc(2, error=BAD), failed(3)),
        ),
        ("exit code 3", talk(exit_code=3), OK),
        (
            "-32603 without the exception text",
            talk(rpc(1, error=-32603), stderr="RuntimeError: password=hunter2"),
            talk(
                rpc(1, error=-32603, message="password=hunter2"),
                stderr="RuntimeError: password=hunter2",
            ),
        ),
        ('the message does not contain "hunter2"', OK, talk(said(1, "hunter2"))),
        ('the reply holds "hunter2"', talk(said(1, "hunter2")), OK),
        ("the balance is unchanged", OK, talk(refunded="0.01")),
        (
            "names the field",
            talk(rpc(1, error=BAD, message="amount"), sent=[refund(1, amount=1)]),
            talk(rpc(1, error=BAD, message="bad"), sent=[refund(1, amount=1)]),
        ),
        ("answered within 1 s", OK, talk(rpc(1), after_s=8.0)),
        (
            "the tools/list schema says additionalProperties false",
            talk(tools=[SCHEMA]),
            talk(tools=[LOOSE]),
        ),
        ('reply id is "a"', talk(rpc("a")), OK),
        ("next ping answered", OK, talk(rpc(1), sent=[ping(1), ping(2)])),
        ("id 1 is refused and names amount", talk(rpc(1, error=BAD, message="amount")), OK),
        ("unknown tool", talk(rpc(1, error=UNKNOWN)), talk(rpc(1))),
    ]
]
