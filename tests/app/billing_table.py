"""What does each failure cost its tenant? The rows of test_chat_billing."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.app.chat_upstreams import (
    BANG,
    DONE,
    ERROR,
    ERROR_OBJECT,
    HEL,
    LO,
    ROLE,
    STOP,
    USAGE,
    Script,
    answers,
    completion,
    delta,
    event,
    fails,
    silent,
    streams,
)
from tests.app.chat_world import ChatWorld
from tests.app.test_chat_accounting import BLOCKING
from tests.app.test_chat_waits import TIMES
from tidegate.gateway.masking import Masking
from tidegate.limits.ledger import Limit
from tidegate.routing.plan import Cooling, Target
from tidegate.transport.upstream import Failure

PROMPT = 5
"""What "hi" is estimated at."""
BILLED = 43
"""12 of prompt and 31 of answer, as the scripted provider reports them."""

GOOD = streams(ROLE + HEL + LO + STOP + USAGE + DONE)
GOOD_WHOLE = answers(completion("Hello"))
TOKENS = Limit("tokens", "tokens", 50_000)
REPORT = {"usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}
FILTER = {"error": {"code": "content_filter", "message": "no"}}
TOO_LONG = {"error": {"code": "context_length_exceeded"}}
WINDOWS = (
    Target("primary", credential_id="a", context_tokens=100),
    Target("backup", credential_id="b", context_tokens=100_000),
)
MAIL = event(delta(content="mail jane@example.com now "))
STREAM = {"stream": True}
ANY = range(10**6)

Leave = Callable[[ChatWorld, Any], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Row:
    """`status` 0: the client was gone. `verdicts`: successes and failures of each target asked."""

    scripts: Mapping[str, Script | list[Script]]
    status: int
    code: str = "ok"
    charged: int | range = 0
    verdicts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    abandoned: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    counted: bool | None = None
    leave: Leave | None = None


def after_piece(piece: bytes) -> Leave:
    async def leave(_world: ChatWorld, exchange: Any) -> None:
        while piece not in exchange.body:
            await exchange.chunk()
        await exchange.disconnect()

    return leave


async def when_asked(world: ChatWorld, exchange: Any) -> None:
    await world.providers.until(1)
    for _ in range(20):
        await asyncio.wait([asyncio.ensure_future(nothing())])
    await exchange.disconnect()


async def drain_limit(world: ChatWorld, exchange: Any) -> None:
    await exchange.chunk()
    world.inboxes.cut()
    await exchange.read()


async def nothing() -> None:
    """A turn of the loop, and no time."""


FAILED, SERVED, SILENT = (0, 1), (1, 0), (0, 0)
FEW = {"limits": (replace(TOKENS, cap=20),)}
CUT = {"code": "gateway.upstream_interrupted", "status": 200, "fields": STREAM}
PARTIAL = range(PROMPT + 1, PROMPT + 4)

TABLE: dict[str, Row] = {
    "limit exceeded, fits later": Row(
        {"primary": GOOD_WHOLE},
        429,
        "gateway.rate_limited",
        options={"limits": (replace(TOKENS, cap=120),)},
        headers={"x-should-retry": "true"},
    ),
    "n > cap": Row({}, 413, "gateway.request_exceeds_limit", options=FEW),
    "primary fails before commit, backup answers": Row(
        {"primary": answers(ERROR_OBJECT, 500), "backup": GOOD_WHOLE},
        200,
        charged=BILLED,
        verdicts={"primary": FAILED, "backup": SERVED},
        headers={
            "x-tidegate-attempts": "primary:server_error,backup:ok",
            "x-tidegate-provider": "backup",
        },
    ),
    "primary fails before commit, backup streams": Row(
        {"primary": streams(ROLE, ERROR), "backup": GOOD},
        200,
        charged=BILLED,
        verdicts={"primary": FAILED, "backup": SERVED},
        abandoned=PROMPT,
        fields=STREAM,
    ),
    "the same target fails, then answers": Row(
        {"primary": [fails(), GOOD_WHOLE]},
        200,
        charged=BILLED,
        verdicts={"primary": (1, 1)},
        options={"targets": ("primary",)},
    ),
    "all targets fail: 502": Row(
        {"primary": answers(b"", 500), "backup": streams(ERROR)},
        502,
        "gateway.all_providers_failed",
        verdicts={"primary": FAILED, "backup": FAILED},
        abandoned=PROMPT,
        fields=STREAM,
        headers={"x-should-retry": "false"},
    ),
    "all targets fail: 503, they cool": Row(
        dict.fromkeys(("primary", "backup"), answers(ERROR_OBJECT, 429, retry_after="9")),
        503,
        "gateway.all_providers_failed",
        verdicts={"primary": SILENT, "backup": SILENT},
        options={"route": {"cooling": Cooling()}},
        headers={"retry-after": "9", "retry-after-ms": "9000", "x-should-retry": "true"},
    ),
    "all targets fail: 504, the time is over": Row(
        {"primary": silent, "backup": silent},
        504,
        "gateway.all_providers_failed",
        # The backup had half a second: less than its share, so it is not to blame.
        verdicts={"primary": FAILED, "backup": SILENT},
        abandoned=2 * PROMPT,
        options={"deadlines": replace(TIMES, total_s=1.5)},
    ),
    "upstream 400 caller error": Row(
        {"primary": answers(ERROR_OBJECT, 400)},
        400,
        "gateway.upstream_rejected_request",
        verdicts={"primary": SILENT},
        headers={"x-should-retry": "false"},
    ),
    "upstream 400 caller error with usage": Row(
        {"primary": answers(ERROR_OBJECT | REPORT, 400)},
        400,
        "gateway.upstream_rejected_request",
        charged=11,
        verdicts={"primary": SILENT},
        counted=False,
    ),
    "context too long, larger model configured": Row(
        {"primary": answers(TOO_LONG, 400), "backup": GOOD_WHOLE},
        200,
        charged=BILLED,
        verdicts={"primary": SILENT, "backup": SERVED},
        options={"targets": WINDOWS},
    ),
    "context too long everywhere": Row(
        dict.fromkeys(("primary", "backup"), answers(TOO_LONG, 400)),
        400,
        "context_length_exceeded",
        verdicts={"primary": SILENT, "backup": SILENT},
        options={"targets": WINDOWS},
    ),
    "content filter": Row(
        {"primary": answers(FILTER, 400), "backup": GOOD_WHOLE},
        400,
        "content_filter",
        verdicts={"primary": SILENT},
    ),
    "content filter with usage": Row(
        {"primary": answers(FILTER | REPORT, 400), "backup": GOOD_WHOLE},
        400,
        "content_filter",
        charged=11,
        verdicts={"primary": SILENT},
        counted=False,
    ),
    "content filter with usage, as a 200": Row(
        {"primary": answers(FILTER | REPORT), "backup": GOOD_WHOLE},
        400,
        "content_filter",
        charged=11,
        verdicts={"primary": SILENT},
        counted=False,
    ),
    "content filter with usage, as an event": Row(
        {"primary": streams(ROLE, event(FILTER | REPORT)), "backup": GOOD},
        400,
        "content_filter",
        charged=11,
        verdicts={"primary": SILENT},
        fields=STREAM,
        counted=False,
    ),
    "content filter, reported before its event": Row(
        {"primary": streams(ROLE, event({"choices": [], **REPORT}), event(FILTER))},
        400,
        "content_filter",
        charged=11,
        verdicts={"primary": SILENT},
        fields=STREAM,
        counted=False,
    ),
    "first-token deadline, backup answers": Row(
        {"primary": silent, "backup": GOOD},
        200,
        charged=BILLED,
        verdicts={"primary": FAILED, "backup": SERVED},
        abandoned=PROMPT,
        fields=STREAM,
    ),
    "cut after commit": Row(
        {"primary": streams(ROLE, BANG, then=Failure.RESET)},
        charged=PARTIAL,
        verdicts={"primary": FAILED},
        counted=True,
        **CUT,
    ),
    "stall after commit": Row(
        {"primary": streams(ROLE, BANG, hangs=True)},
        charged=PARTIAL,
        verdicts={"primary": FAILED},
        counted=True,
        **CUT,
    ),
    "error event after commit": Row(
        {"primary": streams(ROLE, BANG, ERROR)},
        charged=PARTIAL,
        verdicts={"primary": FAILED},
        counted=True,
        **CUT,
    ),
    "cut after commit, usage reported before": Row(
        {"primary": streams(ROLE, BANG, event({"choices": [], **REPORT}), then=Failure.RESET)},
        charged=11,
        verdicts={"primary": FAILED},
        counted=False,
        **CUT,
    ),
    "stream without usage": Row(
        {"primary": streams(ROLE, HEL, LO, STOP, DONE)},
        200,
        charged=PARTIAL,
        verdicts={"primary": SERVED},
        fields=STREAM,
        counted=True,
    ),
    "client disconnects before commit": Row(
        {"primary": silent},
        0,
        "cancelled",
        verdicts={"primary": SILENT},
        abandoned=PROMPT,
        fields=STREAM,
        leave=when_asked,
    ),
    "client disconnects before commit, prompt reported": Row(
        {"primary": streams(ROLE, event({"choices": [], **REPORT}), hangs=True)},
        0,
        "cancelled",
        charged=11,
        verdicts={"primary": SILENT},
        fields=STREAM,
        leave=when_asked,
    ),
    "client disconnects mid-stream": Row(
        {"primary": streams(ROLE, BANG, hangs=True)},
        200,
        "cancelled",
        charged=PARTIAL,
        verdicts={"primary": SILENT},
        fields=STREAM,
        counted=True,
        leave=after_piece(b"Hel!"),
    ),
    "gateway graceful stop": Row(
        {"primary": streams(ROLE, BANG, hangs=True)},
        charged=PARTIAL,
        verdicts={"primary": SILENT},
        counted=True,
        leave=drain_limit,
        **CUT,
    ),
    "store slow > 250 ms": Row(
        {"primary": GOOD_WHOLE},
        200,
        charged=ANY,
        verdicts={"primary": SERVED},
        headers={"x-tidegate-limiter": "degraded"},
    ),
    "store down": Row(
        {"primary": GOOD_WHOLE},
        503,
        "gateway.store_unavailable",
        headers={"retry-after": "1"},
    ),
    "redactor blocks the response": Row(
        {"primary": answers(completion("mail jane@example.com"))},
        400,
        "gateway.content_blocked",
        charged=BILLED,
        verdicts={"primary": SERVED},
        options={"masking": Masking(BLOCKING)},
    ),
    "redactor blocks in the middle": Row(
        {"primary": streams(ROLE, BANG, MAIL, hangs=True)},
        200,
        "gateway.content_blocked",
        charged=range(PROMPT + 1, PROMPT + 20),
        verdicts={"primary": SERVED},
        fields=STREAM,
        options={"masking": Masking(BLOCKING)},
        counted=True,
    ),
    "our bug": Row({"primary": GOOD_WHOLE}, 500, "gateway.internal", verdicts={"primary": SILENT}),
}
