"""What does `python -m tests.casebook [--profile brief|spec] FILE.jsonl ...` do?

Plays every case of the files, the few that fail a second time (again), and prints the report;
exit status 0 only if nothing failed beyond known_failures.txt.
"""

import argparse
import sys
from pathlib import Path

from tests.casebook import known
from tests.casebook.again import tried_again
from tests.casebook.cases import BadFile, each_file
from tests.casebook.report import Report
from tests.casebook.run import run


def main(arguments: list[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.casebook", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--profile", choices=("brief", "spec"), default="brief")
    parser.add_argument("--strict", action="store_true", help="count known failures as failed")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="these cases")
    parser.add_argument("--one-try", action="store_true", help="play no case a second time")
    parser.add_argument("--verbose", action="store_true", help="say what was checked")
    options = parser.parse_args(arguments)
    try:
        cases = list(each_file(options.files))
    except (BadFile, OSError) as error:
        sys.stderr.write(f"cannot read: {error}\n")
        return 2
    if options.only:
        cases = [case for case in cases if case.id in options.only]
    report = Report(known.read(profile=options.profile), strict=options.strict)
    verdicts = run(cases, profile=options.profile)
    if not options.one_try:
        verdicts, lines = tried_again(
            verdicts, report.known, lambda again: run(again, profile=options.profile)
        )
        for line in lines:
            say(line)
    report.verdicts += verdicts
    if options.verbose:
        for verdict in report.verdicts:
            say(f"{verdict.case.id} checked: {' | '.join(verdict.checked)}")
    for line in report.lines():
        say(line)
    return report.status


def say(line: str) -> None:
    """One line on stdout."""
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
