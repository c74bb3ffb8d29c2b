"""Files and sockets that a process may open: asked for before they are needed."""

import resource
from collections.abc import Iterator

import pytest

from tidegate.gateway.descriptors import make_room


@pytest.fixture
def lowered() -> Iterator[int]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1024:
        pytest.skip("this machine allows too few to try it")
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_soft_limit_is_raised_as_far_as_is_wanted(lowered: int) -> None:
    assert make_room(1000) == 1000
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1000, lowered)


def test_a_limit_that_is_higher_stays(lowered: int) -> None:
    assert make_room(100) == 512
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (512, lowered)


def test_beyond_the_hard_limit_there_is_what_there_is(lowered: int) -> None:
    if lowered == resource.RLIM_INFINITY:
        pytest.skip("there is no hard limit")
    assert make_room(lowered + 1) == lowered
