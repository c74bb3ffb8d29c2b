"""What do lists of known values and detectors of one's own cost a stream?"""

import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.corpus import prose, tokens
from tidegate.redaction import DenyList, Literals, RedactionPolicy, Redactor, detector
from tidegate.redaction.cues import CUES

ROUNDS = 5
LISTED = (10, 10_000, 100_000)
# A pattern, and the text on which a search for it does most in vain.
PATTERNS = (
    ("[A-Za-z ]{1,60} [0-9]{5}", "word and "),
    ("x[ab ]{1,900}y", "xa b "),
    ("(?:[0-9]{4}[ -]?){3}[0-9]{4}x", "1234 5678 1234 5678 "),
    ("[a-z0-9]{1,200}-[a-z0-9]{1,200}!", "abc1-"),
    (r"\(?[0-9]{1,20}\)? [0-9]{1,20}#", "(12) 34 "),
)


def main() -> None:
    """Print times for each token and their ratios, and how time grows on adversarial text."""
    pieces = tokens(prose()[:300_000])
    base = RedactionPolicy.preset("default")
    print(f"token-sized pieces of prose, median of {ROUNDS}")  # noqa: T201 - a report
    named = [("default detectors", base)]
    named += [(f"with {size:,} literals", base.with_detectors(made(size))) for size in LISTED]
    own = detector("EMPLOYEE_ID", prefix="EMP-", body="[0-9]", min=6, max=8)
    named.append(("with a detector made of a prefix", base.with_detectors(own)))
    named.append(("with all rules of thumb", base.with_actions(dict.fromkeys(CUES, "mask"))))
    times = by_turns([lambda policy=policy: fed(policy, pieces) for _, policy in named])
    for (name, _), each in zip(named, times, strict=True):
        ratio = each / times[0]
        print(f"  {name:34} {each / len(pieces) * 1e6:7.2f} us  x {ratio:.2f}")  # noqa: T201
    print("adversarial text, time for twice as much of it (2 would be linear)")  # noqa: T201
    for pattern, unit in PATTERNS:
        policy = RedactionPolicy({}).with_detectors(detector("OWN", regex=pattern))
        short, long = by_turns(
            [lambda n=n, u=unit, p=policy: fed(p, [u] * n) for n in (2_000, 4_000)]
        )
        per_char = short / (2_000 * len(unit)) * 1e6
        print(f"  {pattern:34} {per_char:7.2f} us a character  x {long / short:.2f}")  # noqa: T201


def made(size: int) -> DenyList:
    """A list of so many made-up names of two words."""
    rnd = random.Random(size)  # noqa: S311 - the same names in every run
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rnd.choice(letters) for _ in range(rnd.randrange(5, 10))) for _ in range(size)]
    return DenyList(Literals(f"{word} {rnd.choice(words)}" for word in words))


def fed(policy: RedactionPolicy, pieces: Sequence[str]) -> float:
    """Seconds for one stream."""
    redactor = Redactor(policy, keep_spans=False)
    started = time.perf_counter()
    for piece in pieces:
        redactor.feed(piece)
    redactor.flush()
    return time.perf_counter() - started


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
