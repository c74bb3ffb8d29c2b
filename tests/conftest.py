"""What holds for all tests: how long an example takes says nothing on a busy machine, and the
processes that they start hear of Ctrl-C although a shell started the tests in the background."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "busy", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Inherited by every process from here on, if it stayed.
    signal.signal(signal.SIGINT, signal.default_int_handler)
