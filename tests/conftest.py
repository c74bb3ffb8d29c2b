"""What holds for all tests: how long an example takes says nothing on a busy machine, and the
processes that they start hear of signals although the tests run in the background of a shell."""

import signal

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
