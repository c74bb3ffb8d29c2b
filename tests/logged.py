"""What did the code of this test log?

Not everything that was caught: the threads of a test before it may still be ending, and the event
loop complains of what it collects of others. So a test says whose lines it is about.
"""

import logging

import pytest


def lines(caplog: pytest.LogCaptureFixture, loggers: str) -> list[logging.LogRecord]:
    """What the loggers said whose names begin with `loggers`, in order."""
    return [record for record in caplog.records if record.name.startswith(loggers)]


def logged(caplog: pytest.LogCaptureFixture, loggers: str) -> list[str]:
    """The same without their fields."""
    return [record.getMessage() for record in lines(caplog, loggers)]
