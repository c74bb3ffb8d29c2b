"""Does everything that outlives a request belong to somebody, and is it bounded?"""

import pytest

from tests.unit.mcp.asking import ADMIN, STRANGER, VIEWER
from tidegate.mcp.sessions import Recent, RunningCalls, Session, Sessions
from tidegate.policy import Principal


def test_a_session_has_an_id_of_ours_and_belongs_to_its_principal() -> None:
    sessions = Sessions()
    mine = sessions.open(VIEWER, "s", "upstream-id", "2025-11-25", 0.0)
    assert mine.id != "upstream-id"
    assert len(mine.id) == 32
    assert sessions.find(mine.id, VIEWER, 1.0) is mine
    for other in (ADMIN, STRANGER, Principal("vera", "other", ("viewer",), "k1")):
        assert sessions.find(mine.id, other, 1.0) is None
    assert sessions.find(mine.id, VIEWER, 1.0) is mine


def test_a_new_key_of_the_same_principal_keeps_the_session() -> None:
    sessions = Sessions()
    mine = sessions.open(VIEWER, "s", "u", None, 0.0)
    assert sessions.find(mine.id, Principal("vera", "acme", ("admin",), "new"), 0.0) is mine


def test_an_ended_session_is_unknown() -> None:
    sessions = Sessions()
    mine = sessions.open(VIEWER, "s", "u", None, 0.0)
    sessions.close(mine)
    sessions.close(mine)
    assert sessions.find(mine.id, VIEWER, 0.0) is None
    assert len(sessions) == 0


def test_an_unused_session_expires_and_use_keeps_it() -> None:
    sessions = Sessions(idle_s=10.0)
    used, idle = (sessions.open(VIEWER, "s", "u", None, 0.0) for _ in range(2))
    assert sessions.find(used.id, VIEWER, 9.0) is used
    assert sessions.find(idle.id, VIEWER, 10.0) is None
    assert sessions.find(used.id, VIEWER, 18.9) is used
    assert sessions.find(used.id, VIEWER, 28.9) is None


def test_one_principal_cannot_fill_the_table() -> None:
    sessions = Sessions(bound=5, per_owner=2)
    theirs = sessions.open(ADMIN, "s", "u", None, 0.0)
    mine = [sessions.open(VIEWER, "s", "u", None, 1.0) for _ in range(10)]
    assert len(sessions) == 3
    assert [s for s in mine if sessions.find(s.id, VIEWER, 1.0)] == mine[-2:]
    assert sessions.find(theirs.id, ADMIN, 1.0) is theirs


def test_the_whole_table_is_bounded() -> None:
    sessions = Sessions(bound=3, per_owner=2)
    people = [Principal(str(n), "t", (), "k") for n in range(10)]
    for each in people:
        sessions.open(each, "s", "u", None, 0.0)
    assert len(sessions) == 3


def test_a_task_is_known_to_the_principal_that_began_it_only() -> None:
    sessions = Sessions()
    sessions.begin_task(VIEWER, "s", "t1", "get_status")
    assert sessions.task_tool(VIEWER, "s", "t1") == "get_status"
    assert sessions.task_tool(ADMIN, "s", "t1") is None
    assert sessions.task_tool(VIEWER, "other", "t1") is None
    assert sessions.task_tool(VIEWER, "s", 1) is None


def test_only_the_recent_is_remembered() -> None:
    recent: Recent[int] = Recent(2)
    for key in ("a", "b", "a", "c"):
        recent.put(key, len(recent))
    assert [recent.get(key) for key in ("a", "b", "c")] == [2, None, 2]
    assert (recent.take("a"), recent.take("a")) == (True, False)


def test_an_id_goes_out_as_it_came_unless_it_is_taken() -> None:
    fresh = iter([100, 101, 102])
    calls = RunningCalls(lambda: next(fresh))
    with calls.running(VIEWER, "s", None, 7) as first, calls.running(ADMIN, "s", None, 7) as second:
        assert (first.upstream_id, second.upstream_id) == (7, 100)
        with calls.running(ADMIN, "other", None, 7) as elsewhere:
            assert elsewhere.upstream_id == 7
        with calls.running(VIEWER, "s", None, "7") as text:
            assert text.upstream_id == "7"
            with calls.running(VIEWER, "s", None, "7") as again:
                assert again.upstream_id == "7#101"
        with calls.running(VIEWER, "s", None, 100) as taken:
            assert taken.upstream_id == 102
    with calls.running(ADMIN, "s", None, 7) as later:
        assert later.upstream_id == 7
    assert len(calls) == 0


def test_sessions_of_the_upstream_keep_their_own_ids() -> None:
    sessions, calls = Sessions(), RunningCalls()
    one, two = (sessions.open(VIEWER, "s", each, None, 0.0) for each in ("u1", "u2"))
    with calls.running(VIEWER, "s", one, 1) as first, calls.running(VIEWER, "s", two, 1) as second:
        assert (first.upstream_id, second.upstream_id) == (1, 1)
        assert calls.find(VIEWER, one, 1) is first
        assert calls.find(VIEWER, two, 1) is second
        assert calls.find(VIEWER, None, 1) is None


def test_a_cancellation_finds_the_call_of_its_own_client() -> None:
    calls = RunningCalls()
    with calls.running(VIEWER, "s", None, 7) as mine, calls.running(ADMIN, "s", None, 7) as theirs:
        assert calls.find(VIEWER, None, 7) is mine
        assert calls.find(ADMIN, None, 7) is theirs
        for other in ("7", 8, None, True, [7]):
            assert calls.find(VIEWER, None, other) is None
        assert calls.find(STRANGER, None, 7) is None
    assert calls.find(VIEWER, None, 7) is None


def test_of_two_calls_with_one_key_the_one_from_the_same_peer_is_meant() -> None:
    calls = RunningCalls()
    with (
        calls.running(VIEWER, "s", None, 7, ("10.0.0.1", 1)) as first,
        calls.running(VIEWER, "s", None, 7, ("10.0.0.2", 2)) as second,
    ):
        assert calls.find(VIEWER, None, 7, ("10.0.0.2", 2)) is second
        # From a new connection it could be either; the wrong call must not be ended.
        assert calls.find(VIEWER, None, 7, ("10.0.0.3", 3)) is None
        assert calls.find(VIEWER, None, 7, ("10.0.0.1", 9)) is first
    with calls.running(VIEWER, "s", None, 7, ("10.0.0.1", 1)) as only:
        assert calls.find(VIEWER, None, 7, ("10.0.0.3", 3)) is only


def test_callers_without_a_key_cannot_end_the_calls_of_another_machine() -> None:
    guest = Principal("guest", "acme", (), "anonymous")
    calls = RunningCalls()
    with calls.running(guest, "s", None, 7, ("10.0.0.1", 1)) as only:
        assert calls.find(guest, None, 7, ("10.0.0.3", 3)) is None
        assert calls.find(guest, None, 7) is None
        assert calls.find(guest, None, 7, ("10.0.0.1", 9)) is only


def test_a_failed_call_gives_its_id_back() -> None:
    calls = RunningCalls()
    with pytest.raises(KeyError), calls.running(VIEWER, "s", None, 7):
        raise KeyError
    assert len(calls) == 0


def test_whoever_waits_for_the_end_of_a_session_hears_of_it_once_however_it_ends() -> None:
    told: list[str] = []
    sessions = Sessions(bound=3, per_owner=2, idle_s=10.0)
    people = [Principal(str(n), "t", (), "k") for n in range(4)]

    def opened(name: str, person: Principal, now_s: float) -> Session:
        session = sessions.open(person, "s", "u", None, now_s)
        session.on_end.add(lambda: told.append(name))
        return session

    closed = opened("closed", VIEWER, 0.0)
    sessions.close(closed)
    sessions.close(closed)
    assert told == ["closed"]
    opened("pushed out by its principal", VIEWER, 1.0)
    for _ in range(2):
        sessions.open(VIEWER, "s", "u", None, 2.0)
    assert told == ["closed", "pushed out by its principal"]
    opened("pushed out by all", people[0], 1.5)
    opened("expired", people[1], 3.0)
    sessions.open(people[2], "s", "u", None, 4.0)
    sessions.find("x", VIEWER, 100.0)
    assert sorted(told[2:]) == ["expired", "pushed out by all"]


def test_each_session_vouches_for_its_events_with_a_secret_of_its_own() -> None:
    sessions = Sessions()
    one, other = (sessions.open(VIEWER, "s", "u", None, 0.0) for _ in range(2))
    assert one.secret != other.secret
    assert len(one.secret) == 16
    assert repr(one.secret) not in repr(one)


def test_it_is_known_who_has_a_session_where() -> None:
    sessions = Sessions()
    mine = sessions.open(VIEWER, "s", "u", None, 0.0)
    assert sessions.has(VIEWER, "s")
    assert not sessions.has(VIEWER, "other")
    assert not sessions.has(ADMIN, "s")
    sessions.close(mine)
    assert not sessions.has(VIEWER, "s")


def test_sessions_with_the_gateway_share_the_ids_of_a_server_with_calls_without_any() -> None:
    """They are sessions with us: at the server all of these calls come from one caller."""
    sessions, calls = Sessions(), RunningCalls()
    held = [sessions.open(VIEWER, "with-us", "", None, 0.0) for _ in range(2)]
    with (
        calls.running(VIEWER, "server", held[0], 1) as one,
        calls.running(VIEWER, "server", held[1], 1) as two,
        calls.running(VIEWER, "server", None, 1) as three,
        calls.running(VIEWER, "other", None, 1) as four,
    ):
        assert len({one.upstream_id, two.upstream_id, three.upstream_id}) == 3
        assert (four.upstream_id, four.server) == (1, "other")
        assert calls.find(VIEWER, held[1], 1) is two
