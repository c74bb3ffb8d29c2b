"""Which tests are tried again when they fail, and how does everybody hear of it?

Those that start processes or open sockets share the machine with whatever else runs on it: a
failure of one of them is tried once more, from nothing. Never those that run in this process.
The summary names every test that needed its second try and how the first one ended, and more
than `MOST` of them fail the run: so many are no accident.
"""

import pytest
from _pytest.runner import call_and_report, runtestprotocol
from _pytest.terminal import TerminalReporter

MOST = 3
FOLDERS = ("acceptance", "cases", "contract", "seed", "wire")
"""Of tests/: where tests start processes or open sockets."""

_FIRST_TRY = "first try"
_TOLD_LINES = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--one-try`, for whoever hunts the causes."""
    parser.addoption("--one-try", action="store_true", help="a test that fails is not tried again")


def pytest_configure(config: pytest.Config) -> None:
    """Count where all results come together: not in a worker of xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Counting())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run it; when it fails, everything it stood on is taken down and set up anew for the second.

    Only the reports of the try that counts are logged.
    """
    if item.config.getoption("one_try") or not may_try_again(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = _first_try(item, nextitem)
    if failed := [report for report in reports if report.failed]:
        item.user_properties.append((_FIRST_TRY, _ending(failed)))
        runtestprotocol(item, nextitem=nextitem)
    else:
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def may_try_again(item: pytest.Item) -> bool:
    """Whether the test stands in one of the folders."""
    tests = item.config.rootpath / "tests"
    return any((tests / folder) in item.path.parents for folder in FOLDERS)


def _first_try(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """What `runtestprotocol` does, but what is shared with the next test goes, too, on failure."""
    reports = [call_and_report(item, "setup", log=False)]
    if reports[0].passed:
        reports.append(call_and_report(item, "call", log=False))
    stays = all(not report.failed for report in reports)
    reports.append(
        call_and_report(item, "teardown", log=False, nextitem=nextitem if stays else None)
    )
    item._request = False  # type: ignore[attr-defined]
    item.funcargs = None  # type: ignore[attr-defined]
    return reports


def _ending(failed: list[pytest.TestReport]) -> str:
    """The last lines of what the failures said."""
    lines = [line for report in failed for line in report.longreprtext.splitlines()]
    return "\n".join(lines[-_TOLD_LINES:])


class Counting:
    """Counts second tries where the results come together, and says so."""

    def __init__(self) -> None:
        self.needed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Under xdist the reports come from the workers, with the properties of their items."""
        for name, value in report.user_properties:
            if name == _FIRST_TRY:
                self.needed[report.nodeid] = str(value)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """More than `MOST` fail the run."""
        if len(self.needed) > MOST and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Every test that needed its second try, and how the first one ended."""
        if not self.needed:
            return
        terminalreporter.section("tests that needed a second try", yellow=True)
        for name, ending in self.needed.items():
            terminalreporter.line(name, bold=True)
            terminalreporter.line(ending)
        if len(self.needed) > MOST:
            terminalreporter.line(
                f"{len(self.needed)} tests needed a second try; more than {MOST} fail the run.",
                red=True,
            )
