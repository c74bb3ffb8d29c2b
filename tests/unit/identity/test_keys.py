import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import Unauthenticated
from tidegate.identity import KeyEntry, KeyTable
from tidegate.identity.keys import bearer
from tidegate.policy import Principal

ALICE = Principal("alice", "acme", ("viewer",), "key-a")
BORIS = Principal("boris", "blue", (), "key-b")
GUEST = Principal("guest", "demo", ("viewer",), "anonymous")
KEY_A, KEY_B = b"alice-" + b"a" * 20, b"boris-" + b"b" * 20


def entry(key: bytes, principal: Principal) -> KeyEntry:
    return KeyEntry(hashlib.sha256(key).digest(), principal)


TABLE = KeyTable([entry(KEY_A, ALICE), entry(KEY_B, BORIS)])
OPEN = KeyTable([entry(KEY_A, ALICE)], anonymous=GUEST)


@pytest.mark.parametrize("scheme", [b"Bearer", b"bearer", b"BEARER", b"bEaReR"])
def test_a_key_is_found_under_any_spelling_of_the_scheme(scheme: bytes) -> None:
    assert TABLE.find([scheme + b" " + KEY_A]) == ALICE
    assert TABLE.find([scheme + b" " + KEY_B]) == BORIS


REFUSED = {
    "nothing": [],
    "empty": [b""],
    "scheme only": [b"Bearer"],
    "scheme and blank": [b"Bearer "],
    "no scheme": [KEY_A],
    "no blank": [b"Bearer" + KEY_A],
    "two blanks": [b"Bearer  " + KEY_A],
    "tab": [b"Bearer\t" + KEY_A],
    "blank behind": [b"Bearer " + KEY_A + b" "],
    "blank inside": [b"Bearer " + KEY_A[:5] + b" " + KEY_A[5:]],
    "line break": [b"Bearer " + KEY_A + b"\n"],
    "comma list": [b"Bearer " + KEY_A + b", Bearer " + KEY_B],
    "other scheme": [b"Basic " + KEY_A],
    "longer scheme": [b"Bearers " + KEY_A],
    "outside ASCII": [b"Bearer " + KEY_A + b"\xff"],
    "null byte": [b"Bearer " + KEY_A + b"\0"],
    "wrong key": [b"Bearer " + KEY_A[:-1] + b"x"],
    "shorter key": [b"Bearer " + KEY_A[:-1]],
    "longer key": [b"Bearer " + KEY_A + b"a"],
    "other case": [b"Bearer " + KEY_A.upper()],
    "digest instead of key": [b"Bearer " + hashlib.sha256(KEY_A).hexdigest().encode()],
    "very long": [b"Bearer " + b"a" * 5000],
    "twice the same": [b"Bearer " + KEY_A, b"Bearer " + KEY_A],
    "right and wrong": [b"Bearer " + KEY_A, b"Bearer x"],
    "right and empty": [b"Bearer " + KEY_A, b""],
}


@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED.keys())
def test_every_bad_credential_gets_the_same_answer(values: list[bytes]) -> None:
    with pytest.raises(Unauthenticated) as caught:
        TABLE.find(values)
    reference = Unauthenticated()
    assert (caught.value.status, caught.value.code) == (401, reference.code)
    assert caught.value.message == reference.message
    assert caught.value.param is None
    assert KEY_A.decode() not in caught.value.detail


def test_without_any_header_the_anonymous_principal_calls() -> None:
    assert OPEN.find([]) == GUEST
    assert OPEN.find([b"Bearer " + KEY_A]) == ALICE


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "nothing"])
def test_a_wrong_credential_never_becomes_the_anonymous_principal(name: str) -> None:
    with pytest.raises(Unauthenticated):
        OPEN.find(REFUSED[name])


def test_an_empty_table_knows_nobody() -> None:
    with pytest.raises(Unauthenticated):
        KeyTable([]).find([b"Bearer " + KEY_A])


def test_two_entries_for_one_key_are_refused() -> None:
    with pytest.raises(ValueError, match="two entries"):
        KeyTable([entry(KEY_A, ALICE), entry(KEY_A, BORIS)])


@given(st.lists(st.binary(max_size=40), max_size=3))
def test_random_headers_name_nobody_and_raise_nothing_else(values: list[bytes]) -> None:
    with pytest.raises(Unauthenticated):
        TABLE.find(values)


@given(st.binary(min_size=1, max_size=60))
def test_a_bearer_key_is_taken_whole_or_not_at_all(key: bytes) -> None:
    visible = all(0x21 <= byte <= 0x7E for byte in key)
    assert bearer(b"Bearer " + key) == (key if visible else None)
