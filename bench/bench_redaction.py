"""What does redaction cost, in small pieces and in blocks, and how long is text held?"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import corpus
from bench.gateway import cores
from tidegate.redaction import RedactionPolicy, Redactor

HERE = Path(__file__).parent
PEERS = ("partial", "cpex", "datafog", "presidio")
ROUNDS = 9
PIECES = 12_000
DELTA = json.dumps(
    {
        "id": "chatcmpl-9abcdefghijklmnopqrstuv",
        "object": "chat.completion.chunk",
        "created": 1_764_500_000,
        "model": "gpt-4o-2024-08-06",
        "system_fingerprint": "fp_0123456789",
        "choices": [
            {"index": 0, "delta": {"content": " word"}, "logprobs": None, "finish_reason": None}
        ],
    }
)
# Beginnings of values over and over, and values: what an attacker would send.
HOSTILE = (
    *("1", "1 ", "12-", "1.", "123-45-", "4111 ", "4111 1111 1111 1112 ", "123-45-6789 ", "0.1 "),
    *("2024-01-01 ", "a", "a.", "a.a@", "@", "a@b.co ", "sk-", "ey" + "J.", "-", "_", "GB82 "),
    *("+1(", "redis://:", "//u:", "password:", "password=a1b2c3d4 ", "key = ", "Authorization: "),
    *("-----BEGIN ", "%40", "&#", "&amp;", "\\", "\x1b[", "\u200b", "\uff11", "\u00e9@", "\u53f71"),
)


def say(line: str = "") -> None:
    """One line of the report."""
    print(line, flush=True)  # noqa: T201 - a report


def seconds(work: Callable[[], object]) -> float:
    """Processor time, because other programs run beside this one."""
    begin = process_time()
    work()
    return process_time() - begin


def decode_and_encode() -> None:
    """What any gateway does to each event at least."""
    for _ in range(2_000):
        json.dumps(json.loads(DELTA))


def fed(policy: RedactionPolicy, pieces: list[str]) -> Callable[[], None]:
    """Feeding all pieces to a new redactor."""

    def work() -> None:
        feed = Redactor(policy, keep_spans=False).feed
        for piece in pieces:
            feed(piece)

    return work


def compare_tokens(policy: RedactionPolicy, texts: dict[str, str]) -> None:
    """Pieces of a model's size against decoding and encoding their events."""
    cut = {name: corpus.tokens(text)[:PIECES] for name, text in texts.items()}
    best = dict.fromkeys(cut, 1e9)
    event = 1e9
    for _ in range(ROUNDS):
        event = min(event, seconds(decode_and_encode) / 2_000)
        for name, pieces in cut.items():
            best[name] = min(best[name], seconds(fed(policy, pieces)) / len(pieces))
    say(f"pieces of a model's size; json loads + dumps of one event takes {event * 1e6:.2f} us")
    for name, pieces in cut.items():
        size = sum(map(len, pieces)) / len(pieces)
        share = event / best[name]
        say(f"  {name:10} {size:.1f} characters, {best[name] * 1e6:.2f} us: 1/{share:.1f} of that")


def held(policy: RedactionPolicy, texts: dict[str, str]) -> None:
    """Characters that wait after each piece."""
    say("characters held after each piece: mean, then 50, 90, 99 and 100 of a hundred")
    for name, text in texts.items():
        redactor = Redactor(policy, keep_spans=False)
        waiting = []
        for piece in corpus.tokens(text):
            redactor.feed(piece)
            waiting.append(redactor.pending)
        waiting.sort()
        at = [waiting[min(len(waiting) - 1, len(waiting) * n // 100)] for n in (50, 90, 99, 100)]
        say(f"  {name:10} {sum(waiting) / len(waiting):.1f}, {', '.join(map(str, at))}")


@contextmanager
def peer(name: str, path: str) -> Iterator[Callable[[], tuple[float, float]] | None]:
    """One round of another library in a process of its own; None if it is not installed."""
    python = HERE / ".venv" / "bin" / "python"
    if not python.exists():
        yield None
        return
    process = subprocess.Popen(  # noqa: S603 - our own command
        [python, HERE / "redaction_peer.py", name, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("no pipes")
    asks, answers = process.stdin, process.stdout
    ready = answers.readline().strip() == "ready"

    def ask() -> tuple[float, float]:
        asks.write("\n")
        asks.flush()
        whole, stream = map(float, answers.readline().split())
        return whole, stream

    try:
        yield ask if ready else None
    finally:
        asks.close()
        process.wait()


def compare_blocks(policy: RedactionPolicy, kind: str, text: str) -> None:
    """Blocks of 4 KiB, by turns with other libraries."""
    large, small = corpus.blocks(text), corpus.tokens(text)
    chars = sum(map(len, large))
    say(f"{kind} in blocks of 4 KiB, {chars // 1000} kB")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prose.txt"
        path.write_text(text, encoding="utf-8")
        for name in PEERS:
            with peer(name, str(path)) as ask:
                if ask is None:
                    say(f"  {name:10} did not install, so there is no figure")
                    continue
                ours, theirs, our_piece, their_piece = 1e9, 1e9, 1e9, 1e9
                for _ in range(5):
                    ours = min(ours, seconds(fed(policy, large)))
                    our_piece = min(our_piece, seconds(fed(policy, small)))
                    whole, stream = ask()
                    theirs, their_piece = min(theirs, whole), min(their_piece, stream)
            line = f"  {name:10} {chars / theirs / 1e6:7.2f} MB/s, we {chars / ours / 1e6:.0f} MB/s"
            line += f": {theirs / ours:.1f} times as fast"
            if their_piece:
                line += f"; in pieces {their_piece / our_piece:.1f} times"
            say(line)


def other_blocks(policy: RedactionPolicy, texts: dict[str, str]) -> None:
    """Blocks of other texts."""
    for name, text in texts.items():
        large = corpus.blocks(text)
        best = min(seconds(fed(policy, large)) for _ in range(ROUNDS))
        say(f"  {name:10} {sum(map(len, large)) / best / 1e6:.0f} MB/s")


def hostile(policy: RedactionPolicy) -> None:
    """Texts that are nothing but beginnings of values."""
    rows = []
    for unit in HOSTILE:
        text = (unit * (40_960 // len(unit) + 1))[:40_960]
        large = [text[i : i + 4096] for i in range(0, len(text), 4096)]
        rate, worst = 0.0, 1e9
        for _ in range(5):
            feed = Redactor(policy, keep_spans=False).feed
            times = [seconds(lambda piece=piece, feed=feed: feed(piece)) for piece in large]
            rate, worst = max(rate, len(text) / sum(times)), min(worst, max(times))
        rows.append((worst, rate, unit))
    rows.sort(reverse=True)
    fast = sum(worst < 0.005 for worst, _, _ in rows)
    say(
        f"hostile texts in blocks of 4 KiB: {fast} of {len(rows)} kinds below 5 ms a block; slowest"
    )
    for worst, rate, unit in rows[:8]:
        say(f"  {unit!r:22} {worst * 1e3:.1f} ms a block at most, {rate / 1e6:.2f} MB/s")


def main() -> None:
    """Print ratios within this run."""
    policy = RedactionPolicy.preset("default")
    texts = {
        "prose": corpus.prose() * 12,
        "manual": corpus.manual(),
        "curly": corpus.curly_prose() * 12,
        "markdown": corpus.markdown(),
        "code": corpus.code(),
    }
    say(f"all default detectors, best of {ROUNDS} rounds of processor time, {cores()}")
    compare_tokens(policy, texts)
    held(policy, texts)
    for kind in ("prose", "markdown"):
        compare_blocks(policy, kind, texts[kind])
    say("other texts in blocks of 4 KiB")
    other_blocks(policy, texts)
    hostile(policy)


if __name__ == "__main__":
    main()
