"""What does the gateway do when a detector raises on the text it is meant for?

`python -m tests.cases.broken_detector serve ...` is `tidegate serve` with one fault put in: the
detectors raise on every address. No configuration can make a detector fail, so
this is how a case about it gets a real process.
"""

import sys

from tidegate.cli import run
from tidegate.redaction.program import Program


def main() -> int:
    """The exit code of the command."""
    judge = Program.judge

    def broken(self: Program, text: str, *places: int) -> object:
        # With the text in its message, as careless code does.
        if "@" in text[slice(*places)]:
            raise ValueError(f"cannot look at {text!r}")
        return judge(self, text, *places)

    Program.judge = broken  # type: ignore[method-assign, assignment]
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
