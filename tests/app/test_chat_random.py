"""Whatever upstreams say, in whatever order and pieces: one honest answer, on time, paid once.

An oracle of a few lines says which target serves and what the client reads; the path has to agree.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.chat_upstreams import (
    CANARY,
    DONE,
    ERROR,
    ERROR_OBJECT,
    ROLE,
    STOP,
    Asked,
    answers,
    delta,
    event,
    payloads,
)
from tests.app.chat_world import MASKED, OFF, ChatWorld
from tests.app.test_chat_waits import CALM, GRACE_S, TIMES, Timed
from tests.app.test_front import error_of
from tests.app.virtual import run_virtual
from tidegate.gateway.masking import Masking
from tidegate.gateway.pause import pause
from tidegate.testing.clock import ManualClock
from tidegate.transport.upstream import Failure

pytestmark = pytest.mark.full

FIRST_S, IDLE_S, TOTAL_S = TIMES.first_token_s, TIMES.idle_s, 4.0
DEADLINES = replace(TIMES, total_s=TOTAL_S, stream_total_s=TOTAL_S)
REPORT = event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
SILENT = {
    "role": ROLE,
    "empty": event(delta(content="")),
    "comment": f": {CANARY}\n\n".encode(),
    "usage": REPORT,
    "ping": event({"type": "ping", "at": CANARY}),
}
FAULTY = {
    "error": ERROR,
    "detail": event({"detail": CANARY}),
    "broken": f'data: {{"choices": [{CANARY}\n\n'.encode(),
    "named": f"event: error\ndata: {CANARY}\n\n".encode(),
}
PAUSES = {"short pause": 0.15, "long pause": 0.4, "stall": 0.7}
STATUSES = (429, 500, 502, 503, 529)


@dataclass(frozen=True)
class Play:
    """What one provider does: pieces, some of them in one read, then how it ends; or a status."""

    pieces: tuple[str, ...]
    glued: tuple[bool, ...]
    end: str
    status: int = 200

    def bytes_of(self, name: str, provider: str, number: int) -> bytes:
        if name == "word":
            return event(delta(content=f"{provider}{number} "))
        return {**SILENT, **FAULTY, "finish": STOP, "done": DONE}[name]

    async def __call__(self, asked: Asked) -> None:
        if self.status != 200:
            await answers(ERROR_OBJECT, self.status, x_host=CANARY)(asked)
            return
        asked.head(x_host=CANARY)
        waiting = b""
        for number, name in enumerate(self.pieces):
            if name in PAUSES:
                asked.send(*[waiting] if waiting else [])
                waiting = b""
                await pause(PAUSES[name])
                continue
            waiting += self.bytes_of(name, asked.provider, number)
            if not self.glued[number]:
                asked.send(waiting)
                waiting = b""
                await pause(0.0001)
        asked.send(*[waiting] if waiting else [])
        if self.end == "hang":
            await asked.gone.wait()
        elif self.end == "reset":
            # What came before it is read before it.
            await pause(0.0001)
            asked.fail(Failure.RESET)
        else:
            asked.end()


@dataclass
class Read:
    """What the client reads of one provider; `text` None: nothing, the next one is asked."""

    text: str | None = None
    whole: bool = False


def oracle(play: Play, provider: str) -> Read:
    """The meaning of a play, without bytes, tasks or timers."""
    read, quiet_s, finished = Read(), 0.0, False
    if play.status != 200:
        return read
    for number, name in enumerate(play.pieces):
        if name in PAUSES:
            quiet_s += PAUSES[name]
            if quiet_s >= (FIRST_S if read.text is None else IDLE_S):
                read.whole = finished
                return read
        elif name in FAULTY:
            # An error is one at any time; what is no event at all is nothing but form by then.
            read.whole = finished and name == "broken"
            return read
        elif name == "done":
            read.whole = read.text is not None
            return read
        elif name in ("word", "finish"):
            quiet_s = 0.0
            finished = finished or name == "finish"
            word = f"{provider}{number} " if name == "word" else ""
            read.text = (read.text or "") + word
    # Only the form of its end can be missing after the finish reason.
    read.whole = finished
    return read


pieces = st.lists(
    st.sampled_from(["word", "word", "word", "finish", "done", *SILENT, *FAULTY, *PAUSES]),
    max_size=7,
).map(tuple)
plays = st.builds(
    Play,
    pieces,
    st.tuples(*[st.booleans()] * 7),
    st.sampled_from(["end", "end", "reset", "hang"]),
    st.sampled_from([200] * 6 + list(STATUSES)),
)


def check(given_plays: list[Play], attempts: int, masking: Masking = OFF) -> None:
    """With redaction, text may be held back: of what was not whole less may be read, or nothing."""
    names = ("one", "two", "three")[: len(given_plays)]
    by_name = dict(zip(names, given_plays, strict=True))

    async def body() -> None:
        timed = Timed(clock)
        world = ChatWorld(
            clock=clock,
            targets=names,
            attempts=attempts,
            deadlines=DEADLINES,
            breaker=CALM,
            masking=masking,
            **by_name,  # type: ignore[arg-type]
        )
        exchange = await world.post(stream=True)
        assert timed.now_s <= TOTAL_S + GRACE_S
        seen = exchange.body + repr(exchange.headers).encode()
        assert CANARY.encode() not in seen
        order = world.providers.order
        assert 1 <= len(order) <= attempts
        reads = [oracle(by_name[name], name) for name in order]
        held = masking is not OFF
        assert not any(read.whole or (read.text and not held) for read in reads[:-1])
        used = (await world.usage()).used
        # A connection may end by itself for a moment after its answer was whole.
        await pause(0.3)
        await world.assert_clean(ends=1)
        if exchange.status != 200:
            assert not reads[-1].whole
            assert held or reads[-1].text is None
            assert len(order) == attempts or set(order) == set(names)
            assert error_of(exchange)["code"] == "gateway.all_providers_failed"
            assert used == 0
            return
        assert exchange.header("x-tidegate-provider") == order[-1]
        told = payloads(exchange.body)
        joined = "".join(
            choice["delta"].get("content") or ""
            for data in told
            if isinstance(data, dict)
            for choice in data.get("choices", ())
        )
        text = reads[-1].text or ""
        assert joined == text or (held and not reads[-1].whole and text.startswith(joined))
        assert (told[-1] == "[DONE]") is reads[-1].whole
        assert exchange.body.count(b"[DONE]") == reads[-1].whole
        assert ("error" in told[-1]) is not reads[-1].whole
        assert world.records.outcomes == [
            "ok" if reads[-1].whole else "gateway.upstream_interrupted"
        ]
        assert used > 0

    clock = ManualClock()
    run_virtual(clock, body())


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(plays, min_size=1, max_size=3), st.integers(1, 3))
def test_the_path_agrees_with_the_oracle(given_plays: list[Play], attempts: int) -> None:
    check(given_plays, attempts)


@pytest.mark.full
@settings(max_examples=2000, deadline=None)
@given(st.lists(plays, min_size=1, max_size=3), st.integers(1, 3))
def test_the_path_agrees_with_the_oracle_again_and_again(
    given_plays: list[Play], attempts: int
) -> None:
    check(given_plays, attempts)


def _says_nothing_more(play: Play) -> bool:
    """Text after a finish reason is an error of its own where it would have to be masked."""
    after = play.pieces[play.pieces.index("finish") :] if "finish" in play.pieces else ()
    return "word" not in after


@pytest.mark.full
@settings(max_examples=1000, deadline=None)
@given(st.lists(plays.filter(_says_nothing_more), min_size=1, max_size=3), st.integers(1, 3))
def test_with_redaction_less_may_be_read_and_nothing_else(
    given_plays: list[Play], attempts: int
) -> None:
    check(given_plays, attempts, MASKED)
