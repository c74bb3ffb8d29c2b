"""What lists and approvals make of pins, and what follows in each mode."""

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate.errors import StoreUnavailable
from tidegate.mcp.pin_forms import Flag, Snapshot, skeleton, survey
from tidegate.mcp.pin_store import decode, encode
from tidegate.mcp.pins import (
    EMPTY,
    MOST_PINS,
    Book,
    Event,
    Mode,
    Verdicts,
    approve,
    observe,
    skeletons,
)
from tidegate.policy import Deny, Principal
from tidegate.records.entries import Trail

HIDDEN = "a\u200bb"


def tool(name: str, description: str = "first") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


def seen(book: Book, *tools: dict[str, Any], now_s: float = 1.0, **how: Any) -> Book:
    return observe(book, survey(tools), now_s=now_s, **how).book


def states(book: Book) -> dict[str, str]:
    return {name: pin.state for name, pin in book.pins.items()}


FIRST = seen(EMPTY, tool("kept"), tool("changed"), tool("gone"), tool("odd", HIDDEN))
BOOK = seen(FIRST, tool("kept"), tool("changed", "second"), tool("new"), tool("odd", HIDDEN))
"""One tool in each state."""


def test_what_is_listed_first_is_pinned_unless_it_is_flagged() -> None:
    assert states(FIRST) == {
        "kept": "pinned",
        "changed": "pinned",
        "gone": "pinned",
        "odd": "flagged",
    }
    assert FIRST.is_settled


def test_afterwards_a_difference_stays_one_until_somebody_approves() -> None:
    expected = {
        "kept": "pinned",
        "changed": "changed",
        "gone": "gone",
        "odd": "flagged",
        "new": "new",
    }
    assert states(BOOK) == expected
    again = seen(
        BOOK, tool("kept"), tool("changed", "second"), tool("new"), tool("odd", HIDDEN), now_s=9.0
    )
    assert again is BOOK
    assert BOOK.differing == 3
    approved = approve(BOOK, list(BOOK.pins), now_s=5.0)
    assert states(approved) == dict.fromkeys(("kept", "changed", "odd", "new"), "pinned")
    assert approved.turn > BOOK.turn > FIRST.turn
    assert approve(approved, ["kept"], now_s=6.0) is approved


WORDS = {
    "kept": "",
    "changed": "changed",
    "gone": "gone",
    "odd": "flagged",
    "new": "new",
    "never": "unpinned",
}
REFUSED = {"changed", "odd", "new", "never"}


@pytest.mark.parametrize("mode", ["warn", "block"])
@pytest.mark.parametrize("name", WORDS)
def test_each_state_in_each_mode(name: str, mode: Mode) -> None:
    verdicts = Verdicts("files", mode, BOOK)
    refused = mode == "block" and name in REFUSED
    assert verdicts.word(name) == WORDS[name]
    assert verdicts.refuses(name) is refused
    assert verdicts.shows(tool(name)) is not refused
    denial = Deny("mcp.servers.files.pin", f"pin_{WORDS[name]}") if refused else None
    assert verdicts.deny(name) == denial
    trail = Trail("mcp", "r1", Principal("vera", "acme", (), "k1"), "rev")
    verdicts.note(trail, name)
    (step,) = trail.steps
    verdict = "deny" if refused else "warn" if WORDS[name] else "allow"
    assert (step.stage, step.verdict, step.rule) == ("pin", verdict, "mcp.servers.files.pin")


@pytest.mark.parametrize("mode", ["warn", "block"])
@pytest.mark.parametrize("name", WORDS)
def test_what_could_not_be_checked_passes_in_warn_only(name: str, mode: Mode) -> None:
    verdicts = Verdicts("files", mode, BOOK, unchecked=True)
    assert verdicts.refuses(name) is (mode == "block")
    assert verdicts.word(name) == (
        WORDS[name] if WORDS[name] not in ("", "unpinned") else "unchecked"
    )


@pytest.mark.parametrize("item", [None, 5, "kept", [], {}, {"name": None}, {"name": "x" * 500}])
def test_an_element_without_a_name_is_shown_in_warn_only(item: object) -> None:
    assert not Verdicts("files", "block", BOOK).shows(item)
    assert Verdicts("files", "warn", BOOK).shows(item)


def test_a_renamed_tool_is_a_new_one_and_its_old_name_is_gone() -> None:
    book = seen(seen(EMPTY, tool("read")), {**tool("read"), "name": "fetch"})
    assert states(book) == {"read": "gone", "fetch": "new"}


@pytest.mark.parametrize("back", ["first", "second"])
def test_leaving_and_coming_back_changes_nothing(back: str) -> None:
    book = seen(EMPTY, tool("read"), tool("other"))
    away = seen(book, tool("other"), now_s=2.0)
    assert states(away) == {"read": "gone", "other": "pinned"}
    returned = seen(away, tool("read", back), tool("other"), now_s=3.0)
    assert returned.pins["read"].state == ("pinned" if back == "first" else "changed")
    assert returned.pins["read"].pinned == book.pins["read"].pinned


def test_a_tool_that_was_never_approved_and_leaves_is_forgotten_and_new_again() -> None:
    book = seen(seen(EMPTY, tool("read")), tool("read"), tool("extra"))
    left = observe(book, survey([tool("read")]), now_s=2.0)
    assert states(left.book) == {"read": "pinned"}
    assert left.events == (Event("extra", "gone"),)
    assert states(seen(left.book, tool("read"), tool("extra"))) == {
        "read": "pinned",
        "extra": "new",
    }


def test_a_change_that_is_taken_back_is_none() -> None:
    changed = seen(seen(EMPTY, tool("read")), tool("read", "second"))
    assert states(changed) == {"read": "changed"}
    assert states(seen(changed, tool("read"), now_s=2.0)) == {"read": "pinned"}


def test_approving_a_tool_that_is_gone_drops_its_pin() -> None:
    book = approve(seen(seen(EMPTY, tool("a"), tool("b")), tool("a")), ["b"], now_s=2.0)
    assert states(book) == {"a": "pinned"}
    assert states(seen(book, tool("a"), tool("b"))) == {"a": "pinned", "b": "new"}


def test_an_unknown_name_cannot_be_approved() -> None:
    with pytest.raises(KeyError):
        approve(BOOK, ["kept", "never"], now_s=1.0)


def test_pages_pin_each_their_own_and_the_last_one_ends_the_time_of_trust() -> None:
    first = seen(EMPTY, tool("a"), is_whole=False, is_last=False)
    second = seen(first, tool("b"), is_whole=False, is_last=False)
    last = seen(second, tool("c"), is_whole=False, is_last=True)
    assert states(last) == dict.fromkeys("abc", "pinned")
    assert (second.is_settled, last.is_settled) == (False, True)
    after = seen(last, tool("a", "second"), tool("d"), is_whole=False, is_last=False)
    assert states(after) == {"a": "changed", "b": "pinned", "c": "pinned", "d": "new"}
    assert states(seen(after, tool("c"), is_whole=True)) == {
        "a": "gone",
        "b": "gone",
        "c": "pinned",
    }


def test_a_list_without_tools_is_no_first_use() -> None:
    empty = seen(EMPTY)
    assert empty is EMPTY
    assert states(seen(empty, tool("a"))) == {"a": "pinned"}


def test_events_say_what_is_new_once() -> None:
    found = observe(FIRST, survey([tool("kept"), tool("changed", HIDDEN)]), now_s=2.0)
    assert found.events == (
        Event("changed", "changed", ("description",), (Flag("invisible", "description"),)),
        Event("gone", "gone"),
        Event("odd", "gone"),
    )
    assert (
        observe(found.book, survey([tool("kept"), tool("changed", HIDDEN)]), now_s=3.0).events == ()
    )
    other = observe(found.book, survey([tool("kept"), tool("changed", "third")]), now_s=3.0)
    assert other.events == (Event("changed", "changed", ("description",), ()),)
    assert other.book.pins["changed"].since_s == 3.0


@pytest.mark.parametrize(
    "order", list(itertools.permutations(["read_all", "Read_All", "read_a11"]))
)
def test_of_names_that_look_alike_the_first_is_pinned(order: tuple[str, ...]) -> None:
    book = seen(EMPTY, *map(tool, order))
    assert states(book) == {order[0]: "pinned", order[1]: "flagged", order[2]: "flagged"}
    assert {flag.kind for flag in book.pins[order[1]].flags} == {"lookalike"}
    turned = seen(book, *map(tool, reversed(order)))
    assert states(turned) == states(book)


def test_a_name_that_looks_like_one_of_another_server_is_flagged_and_the_same_name_is_not() -> None:
    others = skeletons(seen(EMPTY, tool("send_mail"), tool("search")))
    book = seen(EMPTY, tool("send_rnail"), tool("search"), others=lambda: others)
    assert states(book) == {"send_rnail": "flagged", "search": "pinned"}


def test_a_name_that_was_never_approved_takes_no_shape_from_anybody() -> None:
    squatter = seen(EMPTY, tool("send_rnail", HIDDEN))
    assert skeletons(squatter) == {}
    assert skeletons(seen(EMPTY, tool("send_mail"))) == {skeleton("send_rnail"): "send_mail"}


def test_others_are_not_asked_for_as_long_as_every_tool_is_approved() -> None:
    def asked() -> dict[str, str]:
        raise AssertionError

    assert seen(seen(EMPTY, tool("a")), tool("a"), others=asked) is not EMPTY


def test_an_approved_flag_is_no_difference_any_more() -> None:
    book = approve(FIRST, ["odd"], now_s=2.0)
    same = [tool("kept"), tool("changed"), tool("gone"), tool("odd", HIDDEN)]
    assert seen(book, *same) is book
    assert book.pins["odd"].state == "pinned"
    assert book.pins["odd"].flags == (Flag("invisible", "description"),)


def test_there_is_room_for_so_many_tools_and_the_rest_is_unpinned() -> None:
    many = {f"t{n}": Snapshot(str(n), ()) for n in range(MOST_PINS + 3)}
    found = observe(EMPTY, many, now_s=1.0)
    assert (len(found.book.pins), found.book.left_out) == (MOST_PINS, 3)
    assert observe(found.book, many, now_s=2.0).book is found.book
    assert Verdicts("s", "block", found.book).refuses(f"t{MOST_PINS}")
    assert not Verdicts("s", "warn", found.book).refuses(f"t{MOST_PINS}")


def test_names_that_come_and_go_do_not_use_the_room_up() -> None:
    book = seen(EMPTY, tool("a"))
    for number in range(50):
        book = seen(book, tool("a"), tool(f"t{number}"))
    assert set(book.pins) == {"a", "t49"}


def test_a_book_survives_being_written() -> None:
    assert decode(encode(BOOK)) == BOOK
    assert decode(encode(EMPTY)) == EMPTY


@pytest.mark.parametrize(
    "document",
    [
        None,
        b"",
        b"{}",
        b"null",
        b'{"form":2,"book":{}}',
        b'{"form":1,"book":{"pins":{"a":{"since_s":1.0}}}}',
        b'{"form":1,"book":{"pins":{"a":{}}}}',
        b'{"form":1,"book":[]}',
        b"\xff" + encode(EMPTY),
        encode(BOOK)[:-20],
    ],
)
def test_what_is_no_book_is_refused_and_never_taken_for_an_empty_one(document: object) -> None:
    with pytest.raises(StoreUnavailable):
        decode(document)


@dataclass
class Oracle:
    """The same rules, from the other side: what was ever approved, and what is shown."""

    approved: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    settled: bool = False

    def list(self, tools: dict[str, str], *, whole: bool, last: bool) -> None:
        for name, text in tools.items():
            known = name in self.approved or name in self.shown
            if not known and not self.settled and text != HIDDEN:
                self.approved[name] = text
        self.shown = dict(tools) if whole else {**self.shown, **tools}
        if last and (self.approved or self.shown):
            self.settled = True

    def approve(self, name: str) -> None:
        if name in self.shown:
            self.approved[name] = self.shown[name]
        else:
            del self.approved[name]

    def states(self) -> dict[str, str]:
        return {name: self._state(name) for name in {*self.approved, *self.shown}}

    def _state(self, name: str) -> str:
        if name not in self.shown:
            return "gone"
        if name in self.approved:
            return "pinned" if self.approved[name] == self.shown[name] else "changed"
        return "flagged" if self.shown[name] == HIDDEN else "new"


@pytest.mark.parametrize("seed", range(150))
def test_random_histories_agree_with_the_oracle(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test
    oracle, book = Oracle(), EMPTY
    for turn in range(30):
        names = list(oracle.states())
        if names and chance.random() < 0.2:
            name = chance.choice(names)
            oracle.approve(name)
            book = approve(book, [name], now_s=float(turn))
        else:
            listed = chance.sample(["copy", "read", "send", "find"], chance.randint(0, 4))
            tools = {name: chance.choice(["one", "two", HIDDEN]) for name in listed}
            whole = chance.random() < 0.6
            last = whole or chance.random() < 0.5
            oracle.list(tools, whole=whole, last=last)
            before = book
            found = observe(
                book,
                survey([tool(name, text) for name, text in tools.items()]),
                now_s=float(turn),
                is_whole=whole,
                is_last=last,
            )
            book = found.book
            assert bool(found.events) <= (book is not before)
            moved = {name for name in book.pins if book.pins[name] != before.pins.get(name)}
            assert moved <= {event.tool for event in found.events}
        assert states(book) == oracle.states(), (seed, turn)
        assert book.is_settled == oracle.settled
        assert decode(encode(book)) == book
        for name, state in states(book).items():
            refused = state in ("changed", "new", "flagged")
            assert Verdicts("s", "block", book).refuses(name) is refused
            assert not Verdicts("s", "warn", book).refuses(name)
