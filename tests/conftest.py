"""What holds for all tests: how long an example takes says nothing on a busy machine, and the
processes that they start hear of signals although the tests run in the background of a shell."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.second_tries",)

settings.register_profile(
    "busy", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy")

# What is ignored is inherited by every process from here on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """The fast tier draws fewer examples of each kind; make test-all draws all of them."""
    if _is_fast(config):
        settings.register_profile("fast", settings.get_profile("busy"), max_examples=25)
        settings.load_profile("fast")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module of which all belongs to make test-all is not even read in the fast tier."""
    if not _is_fast(config) or collection_path.suffix != ".py":
        return None
    return "\npytestmark = pytest.mark.full\n" in collection_path.read_text("utf-8") or None


def _is_fast(config: pytest.Config) -> bool:
    return "not full" in str(config.getoption("markexpr"))
