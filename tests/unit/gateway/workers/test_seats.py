"""Does each place see what the others hold, across descriptors?"""

import os
from collections.abc import Callable

import pytest

from tidegate.gateway.workers.seats import Seat, Table, file_on_disk, make_table, nameless_file


@pytest.mark.parametrize("make_file", [nameless_file, file_on_disk])
def test_places_see_each_other_and_empty_ones_do_not_count(make_file: Callable[[], int]) -> None:
    fd = make_table(3, make_file=make_file)
    ours, theirs = Table(fd), Table(fd)
    os.close(fd)
    first, second = Seat(ours, 1), Seat(theirs, 2)
    assert first.least_of_others() is None
    second.hold(7)
    assert first.least_of_others() == 7
    assert second.least_of_others() is None
    first.hold(0)
    Seat(theirs, 3).hold(2)
    assert second.least_of_others() == 0
    first.leave()
    assert second.least_of_others() == 2
    ours.close()
    theirs.close()
