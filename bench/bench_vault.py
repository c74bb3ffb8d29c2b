"""What do a vault and a classifier cost a stream, beside the detectors?"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.corpus import prose, tokens
from tidegate.redaction import ChatStreamRedactor, RedactionPolicy, Treatment, Vault
from tidegate.redaction.holes import Holes
from tidegate.redaction.spans import EMAIL

ROUNDS = 5
EVENTS = 4_000
ENTRIES = (1, 100, 4_096)
POLICY = RedactionPolicy.preset("default")
AT_A_TIME = 4
"""Events that one read of the gateway's holds, when a classifier is asked."""


def main() -> None:
    """Print times for each event of a chat stream, and their ratios."""
    events = [event(piece) for piece in tokens(prose())[:EVENTS]]
    named: list[tuple[str, Callable[[], float]]] = [
        ("json loads and dumps of an event", lambda: read(events)),
        ("default detectors", lambda: fed(Treatment(POLICY), None, events)),
        ("with an empty vault", lambda: fed(Treatment(POLICY, vault=vault(0)), None, events)),
    ]
    for size in ENTRIES:
        made = vault(size)
        name = f"with a vault of {size:,}"
        named.append(
            (name, lambda made=made: fed(Treatment(POLICY, vault=made), None, events))  # type: ignore[misc]
        )
    named.append(("with a classifier, its own time apart", lambda: classified(events)))
    times = by_turns([run for _, run in named])
    print(f"events of a chat stream, {len(events)} tokens of prose, median of {ROUNDS}")  # noqa: T201
    for (name, _), each in zip(named, times, strict=True):
        ratio = each / times[1]
        print(f"  {name:40} {each / len(events) * 1e6:7.2f} us  x {ratio:.2f}")  # noqa: T201


def event(piece: str) -> bytes:
    """The payload of one event, as a provider sends it."""
    choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return json.dumps({**head, "choices": [choice]}, separators=(",", ":")).encode()


def vault(entries: int) -> Vault:
    """A vault of so many addresses."""
    made = Vault(bytes(16))
    for number in range(entries):
        made.placeholder(EMAIL, f"user{number}@example.com")
    return made


def read(events: Sequence[bytes]) -> float:
    """Seconds for reading and writing every event."""
    started = time.perf_counter()
    for data in events:
        json.dumps(json.loads(data))
    return time.perf_counter() - started


def fed(treatment: Treatment, holes: Holes | None, events: Sequence[bytes]) -> float:
    """Seconds for one stream; with holes, an empty verdict for every sentence."""
    redactor = ChatStreamRedactor(treatment)
    started = time.perf_counter()
    for place in range(0, len(events), AT_A_TIME):
        out = [one for data in events[place : place + AT_A_TIME] for one in redactor.feed(data)]
        if holes is not None:
            for text in holes.wanted:
                holes.judge(text, ())
            holes.fill(b"\n".join(out))
    redactor.finish()
    return time.perf_counter() - started


def classified(events: Sequence[bytes]) -> float:
    """Seconds for a stream that a classifier reads."""
    holes = Holes("0" * 32)
    return fed(Treatment(POLICY, holes=holes), holes, events)


def by_turns(runs: Sequence[Callable[[], float]]) -> list[float]:
    """The median of each run; they take turns, so that a busy machine slows all of them."""
    times: list[list[float]] = [[] for _ in runs]
    for number in range(ROUNDS + 1):
        for place, run in enumerate(runs):
            taken = run()
            if number:  # the first round warms up
                times[place].append(taken)
    return [median(each) for each in times]


if __name__ == "__main__":
    main()
