"""Is every wait of the failing providers written as the gateway reads it?"""

from datetime import UTC, datetime

import pytest

from tidegate.demo.faults_answers import FORMS, wait_headers
from tidegate.routing import retry_after_s

NOW = datetime(2026, 2, 28, 23, 59, 58, 250_000, tzinfo=UTC)
NOTHING = frozenset({"zero", "negative", "past", "words"})
TO_THE_SECOND = frozenset({"seconds", "date", "date-850", "date-c", "unix", "ratelimit"})


def read(form: str, wait_s: float) -> float | None:
    headers = {n.decode(): v.decode() for n, v in wait_headers(form, wait_s, NOW)}
    return retry_after_s(headers, NOW.timestamp())


@pytest.mark.parametrize("wait_s", [1.0, 2.0, 3.5, 40.0])
@pytest.mark.parametrize("form", FORMS)
def test_a_written_wait_is_read_as_it_was_meant(form: str, wait_s: float) -> None:
    waited = read(form, wait_s)
    if form in NOTHING:
        assert waited is None
        return
    assert waited is not None
    # A form of whole seconds is rounded up: never shorter than meant.
    assert -0.001 < waited - wait_s < (1.0 if form in TO_THE_SECOND else 0.001)
