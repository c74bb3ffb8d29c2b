"""What can a worker do wrong? One that does it, started by a real parent.

Run as a script: MODE SLOT READ WRITE LISTENING SEATS. Speaks the words of a worker and serves
nobody.
"""

import os
import signal
import sys
from collections.abc import Callable

from tidegate.frames import Frames
from tidegate.gateway.target_rows import TargetRow
from tidegate.gateway.workers import words
from tidegate.gateway.workers.starting import SIGNALS

Say = Callable[[words.ToParent], None]


def answer(mode: str, message: words.ToWorker, say: Say) -> None:
    """Do as a good worker does, but for what the mode says."""
    match message:
        case words.Begin():
            _begin(mode, message, say)
        case words.Accept():
            say(words.Accepting())
        case words.Offer() if mode == "refuses":
            say(words.Unwilling(message.generation, "f:1:1: a word: is wrong"))
        case words.Offer() if mode == "dies_of_it":
            signal.raise_signal(signal.SIGKILL)
        case words.Offer():
            say(words.Willing(message.generation))
        case words.Take():
            say(words.Took(message.generation))
        case words.Ask(number=number, about=about):
            _report(mode, number, about, say)
        case words.Drain() if mode == "stubborn":
            return
        case words.Drain() | words.Leave():
            say(words.Leaving())
            sys.exit(0)


def _begin(mode: str, message: words.Begin, say: Say) -> None:
    if mode == "cannot":
        say(words.CannotStart("no disk"))
        sys.exit(1)
    if mode == "crashes":
        sys.exit(3)
    if mode != "never_opens":
        say(words.Opened(message.generation))


def _report(mode: str, number: int, about: words.About, say: Say) -> None:
    if mode == "hangs":
        return
    report: dict[str, object] = {"ready": True, "reasons": [], "records": {"dropped": 1}}
    sample = words.Sample("tidegate_x_total", (), 5.0)
    families = (words.Family("tidegate_x", "X.", "counter", (sample,)),)
    row = TargetRow(
        provider="p",
        model=None,
        credential=None,
        routes=("r",),
        state="open",
        reason="consecutive",
        cooling_s=0.0,
        wait_s=4.0,
        share=1.0,
        first_token_ms=None,
        successes=0,
        failures=5,
        recent=("timeout",),
    )
    say(
        words.Told(
            number,
            report if about == "readiness" else None,
            families if about == "metrics" else None,
            (row,) if about == "targets" else None,
        )
    )


def main(mode: str, read: int, write: int) -> None:
    """Until told to end, or alone."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    frames = Frames()
    while data := os.read(read, 65536):
        for body in frames.feed(data):
            answer(mode, words.for_worker(body), lambda said: _say(write, said))


def _say(write: int, said: words.ToParent) -> None:
    os.write(write, words.encode(said))  # shorter than a pipe takes whole


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]), int(sys.argv[4]))
