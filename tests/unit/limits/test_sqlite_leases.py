"""What is known of the leases of a file agrees with the file, also when most was forgotten."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tidegate.limits import sqlite_leases
from tidegate.limits.books import Line, Reservation
from tidegate.limits.sqlite_leases import Leases
from tidegate.limits.sqlite_rows import SQLiteRows

LINES = (Line("tokens/tenant:a/tokens", "tokens", 5, 1),)


def lease(one_id: str, due_us: int = 100) -> Reservation:
    return Reservation(one_id, "me", True, due_us, 200, LINES)


@contextmanager
def opened() -> Iterator[tuple[sqlite3.Connection, Leases]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        SQLiteRows(db).create()
        leases = Leases(db)
        leases.forget()
        yield db, leases


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_found_is_what_the_file_holds_whatever_order_the_ids_come_in(seed: int) -> None:
    chance, held = random.Random(seed), dict[str, Reservation]()  # noqa: S311 - the seed is its name
    with opened() as (db, leases):
        for turn in range(260):
            if chance.random() < 0.01:
                leases.forget()
            ids = [
                f"{max(0, turn * 200 + chance.randrange(-300, 300)):08}" for _ in range(200)
            ] + chance.sample(sorted(held), min(20, len(held)))
            leases.begin(ids)
            for one_id in ids:
                assert leases.find(one_id) == held.get(one_id)
                if one_id not in held:
                    held[one_id] = lease(one_id)
                    leases.keep(held[one_id])
                elif chance.random() < 0.3:
                    leases.drop(one_id)
                    del held[one_id]
            leases.write()
        rows = db.execute("SELECT id FROM limit_reservations ORDER BY id").fetchall()
        assert [one_id for (one_id,) in rows] == sorted(held)
        assert len(held) > 2 * sqlite_leases.KEPT
        assert len(leases._known) <= 2 * sqlite_leases.KEPT + 220


def test_ids_that_grow_are_not_looked_for() -> None:
    with opened() as (db, leases):
        said: list[str] = []
        db.set_trace_callback(said.append)
        for turn in range(3):
            ids = [f"{turn}-{place}" for place in range(9, -1, -1)]
            leases.begin(ids)
            assert [leases.find(one_id) for one_id in ids] == [None] * 10
            for one_id in ids:
                leases.keep(lease(one_id))
            leases.write()
        assert not [statement for statement in said if statement.startswith("SELECT")]
