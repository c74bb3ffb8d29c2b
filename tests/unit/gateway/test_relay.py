"""The clocks and the commit point of one answer, step by step on a clock moved by hand."""

import asyncio
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any

import pytest

from tidegate.errors import ContentBlocked, RedactionFailed, TidegateError
from tidegate.gateway.charge import Charge
from tidegate.gateway.masking import Masking
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.quote import Quote
from tidegate.gateway.relay import ChatCall, Ended, Relay, outcome_of
from tidegate.gateway.respond import Responder
from tidegate.gateway.spent import Spent
from tidegate.limits.ledger import Need
from tidegate.policy import Principal
from tidegate.providers.base import Usage
from tidegate.records.entries import Trail
from tidegate.redaction import Counts, RedactionPolicy
from tidegate.routing import Failover, Outcome, Targets, Try
from tidegate.routing.plan import Deadlines, Route, Target
from tidegate.testing.clock import ManualClock
from tidegate.transport.inbox import AttemptFailed
from tidegate.transport.upstream import Failure

TIMES = Deadlines(first_token_s=10.0, idle_s=5.0, total_s=30.0, stream_total_s=60.0)


@dataclass
class Read:
    """One wake-up: so many seconds later this arrives and the stage releases that."""

    after_s: float = 0.0
    ready: bytes = b""
    tokens: int = 0
    done: bool = False
    broken: Outcome | None = None
    raises: Exception | None = None
    client_s: float = 0.0


@dataclass
class Scene:
    """A relay between an inbox and a stage that follow `reads`; `said` is what it did."""

    reads: list[Read]
    stream: bool = True
    said: list[str] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = ManualClock(monotonic_s=1000.0)
        self.spent = Spent()
        self.tokens_seen = 0
        self.complete = False
        self.held_bytes = 0
        self.is_whole = False
        self.holes = None
        self.broken: Outcome | None = None
        self.found = Counts(email=1)
        self.charge = Charge()
        self.trail = Trail.begin("chat", "r1", Principal("a", "a", (), "k"), "rev")
        route = Route("default", (Target("primary"),), deadlines=TIMES)
        total_s = TIMES.stream_total_s if self.stream else TIMES.total_s
        self.failover = Failover(
            route, Targets(), started_s=1000.0, total_s=total_s, stream=self.stream
        )
        step = self.failover.start(1000.0)
        assert isinstance(step, Try)
        call = ChatCall(
            body=b"{}",
            model="m",
            stream=self.stream,
            quote=Quote(Need(7, 100), Need(7, 100)),
            providers={},
            masking=Masking(RedactionPolicy.preset()).begin("acme", token_bytes),
            deadlines=TIMES,
            started_s=1000.0,
            failover=self.failover,
            charge=self.charge,
            trail=self.trail,
            responder=Responder(self.send, "r1"),
        )
        self.call = call
        self.relay = Relay(call, step, self, self, self.clock, Metrics())  # type: ignore[arg-type]

    # The client.
    async def send(self, message: Any) -> None:
        self.said.append(f"send {message['type'].rpartition('.')[2]}")
        self.sent.append(message)
        if message["type"].endswith("start"):
            assert self.charge.committed
            assert self.failover.header == "primary:ok"
        elif message.get("more_body"):
            self.clock.advance(self.current.client_s)

    # The inbox.
    def arm(self, at_s: float) -> None:
        self.said.append(f"arm {at_s - 1000.0:g}")

    def disarm(self) -> None:
        self.said.append("disarm")

    def let_end(self, _within_s: float) -> None:
        self.said.append("let end")

    async def read(self) -> bytes:
        self.current = self.reads.pop(0)
        self.clock.advance(self.current.after_s)
        if isinstance(self.current.raises, AttemptFailed):
            raise self.current.raises
        return b"arrived"

    # The stage.
    def feed(self, _chunk: bytes) -> bytes:
        if self.current.raises is not None:
            raise self.current.raises
        self.tokens_seen += self.current.tokens
        self.complete, self.broken = self.current.done, self.current.broken
        return self.current.ready

    def fail(self, error: TidegateError, request_id: str) -> bytes:
        return f"error {error.code} {request_id}".encode()

    async def run(self) -> Ended:
        return await self.relay.run()

    @property
    def body(self) -> bytes:
        return b"".join(m.get("body", b"") for m in self.sent)


def ended(scene: Scene) -> Ended:
    return asyncio.run(scene.run())


def test_the_clocks_of_a_stream_go_from_attempt_to_idle_to_total() -> None:
    scene = Scene(
        [
            Read(1.0),
            Read(2.0, b"a", tokens=1),
            Read(1.0),
            Read(3.0, b"b", tokens=1),
            Read(1.0, b"c", done=True),
        ]
    )
    assert ended(scene) == Ended(Outcome.OK, 200)
    # Comments and empty deltas, which are no tokens, move nothing.
    armed = [word for word in scene.said if word.startswith("arm")]
    assert armed == ["arm 10", "arm 10", "arm 8", "arm 8", "arm 12"]
    assert scene.said[-2:] == ["send body", "let end"]
    assert scene.body == b"abc"


def test_the_last_bytes_of_a_stream_are_its_end_in_one_message() -> None:
    scene = Scene([Read(ready=b"a", tokens=1), Read(ready=b"b", done=True)])
    ended(scene)
    assert [m.get("more_body", False) for m in scene.sent[1:]] == [True, False]
    assert scene.body == b"ab"


def test_no_idle_clock_runs_beyond_the_total() -> None:
    reads = [Read(4.0, b"x", tokens=1) for _ in range(14)] + [Read(done=True)]
    scene = Scene(reads)
    ended(scene)
    armed = [float(word[4:]) for word in scene.said if word.startswith("arm")]
    assert armed[1:3] == [9.0, 13.0]
    assert armed[-1] == 60.0


def test_while_the_client_takes_its_time_no_clock_runs() -> None:
    scene = Scene([Read(1.0, b"a", tokens=1, client_s=20.0), Read(1.0), Read(done=True)])
    ended(scene)
    assert scene.said == [
        "arm 10",
        "disarm",
        "send start",
        "send body",
        "arm 26",
        "arm 26",
        "send body",
        "let end",
    ]


def test_a_slow_client_does_not_stretch_the_total() -> None:
    scene = Scene([Read(1.0, b"a", tokens=1, client_s=100.0), Read(done=True)])
    ended(scene)
    assert scene.said[4] == "arm 60"


def test_a_plain_answer_has_one_deadline() -> None:
    scene = Scene([Read(1.0), Read(2.0), Read(1.0, b"{}", tokens=1, done=True)], stream=False)
    scene.spent.usage = Usage(3, 4, 7)
    assert ended(scene) == Ended(Outcome.OK, 200)
    armed = {word for word in scene.said if word.startswith("arm")}
    assert armed == {"arm 30"}  # one target alone may use the whole request
    assert scene.sent[0]["status"] == 200
    headers = dict(scene.sent[0]["headers"])
    assert headers[b"x-tidegate-provider"] == b"primary"
    assert headers[b"x-tidegate-attempts"] == b"primary:ok"
    assert scene.charge.used == Need(3, 4)


def test_before_anything_left_a_break_is_told_to_the_walk_and_costs_nothing() -> None:
    for read, outcome in (
        (Read(broken=Outcome.RATE_LIMITED), Outcome.RATE_LIMITED),
        (Read(raises=AttemptFailed(Failure.TIMEOUT)), Outcome.TIMEOUT),
        (Read(raises=AttemptFailed(Failure.RESET)), Outcome.UNREACHABLE),
        (Read(raises=AttemptFailed(Failure.TOO_LARGE)), Outcome.MALFORMED),
    ):
        scene = Scene([Read(), read])
        assert ended(scene) == Ended(outcome, 200, passing=outcome is Outcome.UNREACHABLE)
        assert scene.sent == []
        assert not scene.charge.committed
        assert "let end" not in scene.said


def test_after_that_a_break_is_one_error_event_and_a_settlement() -> None:
    for read in (
        Read(ready=b"b", broken=Outcome.SERVER_ERROR),
        Read(raises=AttemptFailed(Failure.TIMEOUT)),
    ):
        scene = Scene([Read(ready=b"a", tokens=1), read])
        scene.spent.meter.add("two words")
        code = "gateway.upstream_interrupted"
        assert ended(scene) == Ended(Outcome.INTERRUPTED, 200, code=code)
        assert scene.body == b"a" + read.ready + f"error {code} r1".encode()
        assert not scene.sent[-1].get("more_body", False)
        assert scene.charge.used == Need(7, scene.spent.meter.tokens)
        assert "let end" not in scene.said
        steps = scene.trail.snapshot().steps
        assert [step.stage for step in steps] == ["identity", "redact_response", "cut"]
        assert steps[1].found == {"email": 1}


@pytest.mark.parametrize("error", [RedactionFailed(), ContentBlocked("email")])
def test_a_fault_of_ours_before_anything_left_is_raised(error: TidegateError) -> None:
    scene = Scene([Read(), Read(raises=error)])
    with pytest.raises(type(error)):
        ended(scene)
    assert scene.sent == []
    # What our own policy withholds was still made for the tenant; what we broke was not.
    assert scene.charge.committed == isinstance(error, ContentBlocked)


@pytest.mark.parametrize("error", [RedactionFailed(), ContentBlocked("email")])
def test_a_fault_of_ours_after_that_is_the_event_and_no_verdict(error: TidegateError) -> None:
    scene = Scene([Read(ready=b"a", tokens=1), Read(raises=error)])
    result = ended(scene)
    assert result == Ended(outcome_of(error), 200, code=error.code)
    assert result.outcome is not Outcome.INTERRUPTED
    assert scene.body == f"aerror {error.code} r1".encode()


def test_a_cancelled_answer_is_settled_by_what_was_used_so_far() -> None:
    async def body() -> None:
        scene = Scene([Read(ready=b"a", tokens=1), Read(raises=asyncio.CancelledError())])  # type: ignore[arg-type]
        scene.spent.meter.add("two words")
        with pytest.raises(asyncio.CancelledError):
            await scene.run()
        assert scene.charge.used == Need(7, scene.spent.meter.tokens)
        assert scene.trail.snapshot().steps[-1].stage == "redact_response"

    asyncio.run(body())


@pytest.mark.parametrize("begun", [False, True])
def test_a_time_out_that_is_not_of_our_timer_is_a_bug(*, begun: bool) -> None:
    reads = [Read(ready=b"a", tokens=1)] if begun else []
    scene = Scene([*reads, Read(raises=TimeoutError("somewhere inside"))])
    with pytest.raises(TimeoutError, match="inside"):
        ended(scene)
