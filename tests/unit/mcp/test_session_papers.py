"""What can be done with a session that lies in a store: by its client, and by anybody else?"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.mcp import session_papers as papers
from tidegate.mcp.sessions import Owner, Session

ID, OTHER = "0123456789abcdef" * 2, "f" * 32
NONCE = bytes(papers.NONCE_BYTES)
ALICE: Owner = ("", "acme", "alice", "")
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
owners = st.tuples(words, words, words, words)


def session(
    owner: Owner = ALICE, upstream_id: str = "theirs", version: str | None = None
) -> Session:
    return Session(ID, owner, "http://backend.example/mcp", upstream_id, version)


@settings(max_examples=25)
@given(owners, words, words, st.none() | words, st.binary(min_size=12, max_size=12))
def test_a_session_comes_back_as_it_was(
    owner: Owner, server: str, upstream_id: str, version: str | None, nonce: bytes
) -> None:
    was = Session(ID, owner, server, upstream_id, version)
    found = papers.unsealed(ID, papers.sealed(was, nonce))
    assert found is not None
    for name in ("id", "owner", "server", "upstream_id", "version", "secret"):
        assert getattr(found, name) == getattr(was, name)


def test_without_its_id_there_is_no_session_in_it() -> None:
    document = papers.sealed(session(), NONCE)
    assert papers.unsealed(OTHER, document) is None
    for readable in (b"theirs", b"alice", b"acme", b"backend", ID.encode()):
        assert readable not in document


@pytest.mark.parametrize("place", range(0, 150, 7))
def test_what_somebody_has_changed_is_no_session(place: int) -> None:
    document = bytearray(papers.sealed(session(), NONCE))
    document[place % len(document)] ^= 1
    assert papers.unsealed(ID, bytes(document)) is None
    assert papers.unsealed(ID, bytes(document[:place])) is None


def test_the_same_session_is_written_anew_each_time() -> None:
    one = session()
    assert papers.sealed(one, NONCE) != papers.sealed(one, b"another one!")


def test_keys_tell_apart_what_is_told_apart_and_say_nothing() -> None:
    keys = [
        papers.session_key(ID),
        papers.session_key(OTHER),
        papers.question_key(ID, 1),
        papers.question_key(ID, "1"),
        papers.question_key(OTHER, 1),
        papers.task_key("a", "b,c"),
        papers.task_key("a,b", "c"),
        papers.group_of(ALICE),
        papers.group_of(("", "acme", "", "alice")),
        papers.group_of(("acme", "", "alice", "")),
    ]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 64 and key.isalnum() for key in keys)


def test_the_tool_behind_a_task_is_told_to_its_owner_only() -> None:
    document = papers.begun(ALICE, "run_report")
    assert papers.tool_begun(document, ALICE) == "run_report"
    assert papers.tool_begun(document, ("", "acme", "bob", "")) is None
    assert papers.tool_begun(b"[1]", ALICE) is None
    assert b"alice" not in document


@pytest.mark.parametrize(
    ("text", "is_one"),
    [(ID, True), ("", False), ("unknown", False), (ID[:-1], False), (ID[:-1] + "-", False)],
)
def test_only_what_could_be_an_id_of_ours_is_looked_for(text: str, is_one: bool) -> None:  # noqa: FBT001
    assert papers.is_session_id(text) is is_one


def test_a_session_shows_no_secret_when_it_is_printed() -> None:
    shown = repr(session())
    assert "theirs" not in shown
    assert "secret" not in shown
