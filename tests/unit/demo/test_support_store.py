"""Does the store of the support desk keep its money, whatever happens to its file?"""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tidegate.demo import support_store
from tidegate.demo.support_store import Booked, Customer, Order, StoreUnusable, SupportStore
from tidegate.tools import ToolFailure

REASON = "parcel never arrived"
FIRST_RELEASE = """
create table customers (
  id text primary key, name text not null, email text not null, balance_cents integer not null
    check (balance_cents >= 0)
) strict;
create table refunds (
  id integer primary key, customer text not null references customers (id),
  cents integer not null, reason text not null
) strict;
insert into customers values ('CUST-10001', 'Jane Doe', 'jane@example.com', 24000);
insert into refunds (customer, cents, reason) values ('CUST-10001', 1000, 'an earlier refund');
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "support.db")


@pytest.fixture
def raw(path: str) -> Iterator[sqlite3.Connection]:
    """The file as any program sees it."""
    made = sqlite3.connect(path, isolation_level=None)
    yield made
    made.close()


def order(cents: int, key: str | None = None, customer: str = "CUST-10001") -> Order:
    return Order(customer, cents, REASON, key)


def test_balances_and_keys_in_a_file_survive_a_restart(path: str) -> None:
    first = SupportStore(path)
    assert first.refund(order(50, "k", "CUST-10002")) == Booked(50, 120_000)
    first.close()
    second = SupportStore(path)
    assert second.customer("CUST-10002") == Customer(
        "CUST-10002", "Luis Ortega", "luis@example.com", 120_000
    )
    assert second.refund(order(50, "k", "CUST-10002")) == Booked(50, 120_000, replayed=True)
    second.close()


def test_two_stores_on_one_file_never_overdraw(path: str, raw: sqlite3.Connection) -> None:
    stores = [SupportStore(path), SupportStore(path)]

    def one(number: int) -> bool:
        try:
            stores[number % 2].refund(order(1_000))
        except ToolFailure:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        granted = sum(pool.map(one, range(40)))
    assert granted == 25
    assert raw.execute("select sum(cents), count(*) from refunds").fetchone() == (25_000, 25)
    for store in stores:
        store.close()


def test_fifty_calls_at_once_with_one_key_pay_once(path: str, raw: sqlite3.Connection) -> None:
    stores = [SupportStore(path), SupportStore(path)]
    with ThreadPoolExecutor(10) as pool:
        told = list(pool.map(lambda n: stores[n % 2].refund(order(700, "k")), range(50)))
    assert {(booked.cents, booked.left_cents) for booked in told} == {(700, 24_300)}
    assert [booked.replayed for booked in told].count(False) == 1
    assert raw.execute("select count(*) from refunds").fetchone() == (1,)
    for store in stores:
        store.close()


def test_many_who_open_an_empty_file_at_once_all_get_the_same_store(path: str) -> None:
    together = Barrier(6)

    def opened(_: int) -> SupportStore:
        together.wait(5)
        return SupportStore(path)

    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(opened, range(6)))
    assert stores[0].refund(order(1)).left_cents == 24_999
    found = {store.customer("CUST-10001") for store in stores}
    assert [customer and customer.balance_cents for customer in found] == [24_999]
    for store in stores:
        store.close()


def test_a_commit_waits_for_the_disk(path: str) -> None:
    store = SupportStore(path)
    assert store._db.execute("pragma synchronous").fetchone() == (2,)
    assert store._db.execute("pragma journal_mode").fetchone() == ("wal",)
    store.close()


def test_a_file_of_the_first_release_keeps_its_money_and_learns_keys(
    path: str, raw: sqlite3.Connection
) -> None:
    raw.executescript(FIRST_RELEASE)
    store = SupportStore(path)
    assert store.refund(order(500, "k")) == Booked(500, 23_500)
    assert store.refund(order(500, "k")).replayed
    assert raw.execute("select cents, refund_id from refunds order by id").fetchall() == [
        (1_000, None),
        (500, "k"),
    ]
    assert raw.execute("pragma user_version").fetchone() == (support_store.REVISION,)
    # Customers that the earlier release did not have are added, those it had stay as they were.
    assert store.customer("CUST-10002") is not None
    store.close()
    SupportStore(path).close()


def test_a_file_of_a_later_release_is_refused_and_left_alone(
    path: str, raw: sqlite3.Connection
) -> None:
    SupportStore(path).close()
    raw.execute(f"pragma user_version = {support_store.REVISION + 1}")
    with pytest.raises(StoreUnusable, match=r"^a later release wrote it \(revision 2\)$"):
        SupportStore(path)
    assert raw.execute("pragma user_version").fetchone() == (support_store.REVISION + 1,)


@pytest.mark.parametrize(
    "schema",
    [
        "create table refunds (id integer primary key)",
        "create table customers (id text); create table refunds (id integer)",
        "create table other (x text)",
        "pragma user_version = 7",
    ],
)
def test_a_database_of_something_else_is_refused_and_left_alone(
    schema: str, path: str, raw: sqlite3.Connection
) -> None:
    raw.executescript(schema)
    before = Path(path).read_bytes()
    with pytest.raises(StoreUnusable, match=r"^it is a database of something else$"):
        SupportStore(path)
    assert Path(path).read_bytes() == before


def test_what_is_no_database_is_refused_in_words(path: str, tmp_path: Path) -> None:
    Path(path).write_text("these are my notes, and not a database at all" * 99)
    with pytest.raises(StoreUnusable, match=r"^it is no database$"):
        SupportStore(path)
    with pytest.raises(StoreUnusable, match=r"^it cannot be opened$"):
        SupportStore(str(tmp_path))
    with pytest.raises(StoreUnusable, match=r"^it cannot be opened$"):
        SupportStore(str(tmp_path / "missing" / "support.db"))


def test_a_database_that_others_hold_is_a_refusal_and_nothing_is_booked(
    path: str, raw: sqlite3.Connection
) -> None:
    store = SupportStore(path)
    store._db.execute("pragma busy_timeout = 1")
    raw.execute("begin immediate")
    with pytest.raises(ToolFailure, match=r"^the support desk is busy and did nothing; ask again$"):
        store.refund(order(100, "k"))
    raw.execute("rollback")
    assert store.refund(order(100, "k")) == Booked(100, 24_900)
    store.close()


@pytest.mark.parametrize("at", ["before insert", "after insert"])
def test_a_refund_that_breaks_half_way_changes_nothing_and_frees_its_key(
    at: str, path: str, raw: sqlite3.Connection
) -> None:
    store = SupportStore(path)
    raw.execute(
        f"create trigger broken {at} on refunds begin select raise(abort, 'disk of db-3'); end"
    )
    with pytest.raises(sqlite3.IntegrityError):
        store.refund(order(100, "k"))
    raw.execute("drop trigger broken")
    assert raw.execute("select count(*) from refunds").fetchone() == (0,)
    assert store.refund(order(100, "k")) == Booked(100, 24_900)
    store.close()
