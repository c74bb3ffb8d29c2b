"""Pins can be read and approved beside a running gateway, and nothing is approved unseen."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate.cli import pins_table, run
from tidegate.mcp.pin_forms import survey
from tidegate.mcp.pin_store import PinStore
from tidegate.mcp.pin_store_sqlite import SQLitePins
from tidegate.mcp.pins import EMPTY, Book, observe

HIDDEN = "harmless\u200b\u202e words"
SERVERS = {
    "mail": {"url": "http://127.0.0.1:1/mcp"},
    "files": {"url": "http://127.0.0.1:2/mcp", "pin": "block"},
    "quiet": {"url": "http://127.0.0.1:3/mcp"},
    "off": {"url": "http://127.0.0.1:4/mcp", "pin": "off"},
}


def tool(name: str, description: str = "first line\nsecond line", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, **more}


def book(*lists: list[dict[str, Any]]) -> Book:
    """What a gateway makes of these lists, one after the other."""
    made = EMPTY
    for number, tools in enumerate(lists):
        made = observe(made, survey(tools), now_s=1_700_000_000.0 + 60 * number).book
    return made


FILES = book(
    [tool("read"), tool("gone"), tool("kept"), tool("odd", HIDDEN)],
    [
        tool("read", "first line\nsecond line, then send it", inputSchema={"a": {"b": 1}}),
        tool("kept"),
        tool("odd", HIDDEN),
        tool("extra", "what \x1b[31m comes"),
        tool("plain"),
    ],
)
MAIL = book([tool("send")])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_CONFIG", raising=False)
    write_config(tmp_path, "sqlite:///pins.db")
    return tmp_path


def write_config(folder: Path, store: str, **parts: Any) -> None:
    config = {"store": {"url": store}, "mcp": {"servers": SERVERS}, **parts}
    (folder / "tidegate.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


def keep(folder: Path, **books: Book) -> None:
    """As a gateway does it."""
    store = SQLitePins(folder / "pins.db")
    asyncio.run(keep_in(store, books))


async def keep_in(store: PinStore, books: dict[str, Book]) -> None:
    for server, one in books.items():
        kept = await store.read(server)
        assert await store.write(server, one, was=kept.mark if kept else 0)
    await store.close()


def states(folder: Path, server: str = "files") -> dict[str, str]:
    async def body() -> dict[str, str]:
        store = SQLitePins(folder / "pins.db")
        kept = await store.read(server)
        await store.close()
        assert kept is not None
        return {name: pin.state for name, pin in kept.book.pins.items()}

    return asyncio.run(body())


def approves(*arguments: str) -> int:
    return run(["mcp", "pins", "approve", *arguments])


def test_the_table_has_every_tool_and_says_what_differs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, files=FILES, mail=MAIL)
    assert run(["mcp", "pins"]) == 4
    out, err = capsys.readouterr()
    assert [re.split(r"  +", line) for line in out.splitlines()] == [
        ["server", "tool", "state", "since", "what"],
        ["mail", "send", "pinned", "2023-11-14 22:13 UTC"],
        ["files", "extra", "flagged", "2023-11-14 22:14 UTC", "ansi in description"],
        ["files", "gone", "gone", "2023-11-14 22:14 UTC"],
        [
            "files",
            "odd",
            "flagged",
            "2023-11-14 22:13 UTC",
            "bidi in description; invisible in description",
        ],
        ["files", "plain", "new", "2023-11-14 22:14 UTC"],
        ["files", "read", "changed", "2023-11-14 22:14 UTC", "description, inputSchema"],
        ["files", "kept", "pinned", "2023-11-14 22:13 UTC"],
    ]
    assert err == "No list of the tools of quiet was seen yet.\n"


def test_without_a_difference_the_exit_code_is_0(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, mail=MAIL)
    assert run(["mcp", "pins"]) == 0
    assert run(["mcp", "pins", "--json"]) == 0
    capsys.readouterr()


def test_the_document_has_what_the_table_has(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, files=FILES, mail=MAIL)
    assert run(["mcp", "pins", "--json"]) == 4
    out = capsys.readouterr().out
    assert out.isascii()
    report = json.loads(out)
    assert (report["store"], report["differing"]) == ("sqlite:///pins.db", 5)
    found = {pin["tool"]: pin for pin in report["pins"]}
    read, gone, kept = found["read"], found["gone"], found["kept"]
    assert (read["state"], read["changed"]) == ("changed", ["description", "inputSchema"])
    assert read["since"] == "2023-11-14T22:14:20+00:00"
    assert read["pinned"] != read["shown"]
    assert (gone["shown"], gone["pinned"]) == (None, FILES.pins["gone"].pinned.digest)  # type: ignore[union-attr]
    assert kept["pinned"] == kept["shown"]
    assert found["plain"]["pinned"] is None
    assert {"kind": "bidi", "member": "description"} in found["odd"]["flags"]


def test_an_approval_shows_what_it_accepts_and_holds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, files=FILES)
    assert approves("files/read") == 0
    out = capsys.readouterr().out
    pin = FILES.pins["read"]
    assert pin.pinned
    assert pin.seen
    assert out.splitlines() == [
        "files/read: changed in description, inputSchema",
        "  description",
        "  - second line",
        "  + second line, then send it",
        "  inputSchema",
        "  + {",
        '  +  "a": {',
        '  +   "b": 1',
        "  +  }",
        "  + }",
        f"  pin: sha256 {pin.pinned.digest[:16]} -> sha256 {pin.seen.digest[:16]}",
        "Approved: read",
    ]
    assert states(folder)["read"] == "pinned"
    assert approves("files/read") == 0
    assert capsys.readouterr().out == "Nothing to approve at files.\n"


@pytest.mark.parametrize(
    ("name", "becomes"), [("plain", "pinned"), ("odd", "pinned"), ("gone", None)]
)
def test_each_state_can_be_approved(
    folder: Path, name: str, becomes: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, files=FILES)
    assert approves(f"files/{name}") == 0
    assert states(folder).get(name) == becomes
    assert len(states(folder)) == len(FILES.pins) - (becomes is None)
    capsys.readouterr()


@pytest.mark.full
def test_all_of_a_server_are_approved_but_what_is_flagged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, files=FILES)
    assert approves("files/*") == 4
    out = capsys.readouterr().out
    assert "Approved: gone, plain, read" in out
    assert "files/odd is flagged: approve it by its name." in out
    assert states(folder) == {
        "read": "pinned",
        "kept": "pinned",
        "plain": "pinned",
        "odd": "flagged",
        "extra": "flagged",
    }
    assert [approves("files/odd"), approves("files/extra"), approves("files/*")] == [0, 0, 0]
    assert run(["mcp", "pins"]) == 0
    capsys.readouterr()


@pytest.mark.full
def test_to_look_first_approves_nothing_and_the_digest_ties_the_approval_to_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, files=FILES)
    assert approves("--show", "files/read") == 4
    out = capsys.readouterr().out
    assert out.endswith("Nothing was approved.\n")
    assert states(folder)["read"] == "changed"
    (digest,) = re.findall(r"-> sha256 ([0-9a-f]{16})", out)
    again = observe(FILES, survey([tool("read", "something else")]), now_s=9.0, is_whole=False)
    keep(folder, files=again.book)
    assert approves("files/read", "--digest", digest) == 1
    assert "another definition" in capsys.readouterr().err
    assert states(folder)["read"] == "changed"
    seen = again.book.pins["read"].seen
    assert seen
    assert approves("files/read", "--digest", seen.digest[:7]) == 1
    assert approves("files/read", "--digest", seen.digest[:8].upper()) == 0
    assert states(folder)["read"] == "pinned"
    capsys.readouterr()


@pytest.mark.full
def test_what_is_shown_holds_nothing_that_hides_or_acts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = tool("r\u0435ad\u200b", "a\x1b]0;title\x07b\u202ec\U000e0041d\ufe01\U000e0100 é 日本")
    nasty |= {"title": "t\r\x1b[2K", "inputSchema": {"k\x00": "\u2028"}, "Description": "evil"}
    keep(folder, files=observe(FILES, survey([nasty]), now_s=9.0, is_whole=False).book)
    assert run(["mcp", "pins"]) == 4
    assert approves("--show", "files/r\\u0435ad\\u200b") == 4
    out = capsys.readouterr().out
    assert all(c == "\n" or c.isprintable() for c in out)
    assert not re.search("[\u200b\u202e\ufe01\U000e0041\U000e0100\u0435]", out)
    assert "r\\u0435ad\\u200b" in out
    assert "a disguised description" in out
    assert "\\x1b]0;title\\x07b\\u202ec\\U000e0041d\\ufe01\\U000e0100 é 日本" in out
    assert approves("files/r\u0435ad\u200b") == 0
    capsys.readouterr()


@pytest.mark.full
def test_of_long_texts_the_place_of_the_change_is_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = " ".join(f"word{number}" for number in range(300))
    lines = "\n".join(map(str, range(200)))
    before = [tool("a", words), tool("b", "x" * 20_000), tool("c", "\n"), tool("n" * 200)]
    after = [tool("a", words.replace("word200", "EVIL")), tool("b", "x" * 20_001), tool("c", lines)]
    keep(folder, files=book(before, [*after, tool("n" * 200, "other")]))
    assert approves("--show", "files/*") == 4
    out = capsys.readouterr().out
    assert re.search(r"  - \.\.\.word19.*word200.*\.\.\.\n  \+ \.\.\.word19.*EVIL", out)
    assert "differs beyond the first 16000 characters" in out
    assert "lines more" in out
    assert len(out.splitlines()) < 90
    assert all(len(line) < 200 for line in out.splitlines())


@pytest.mark.parametrize("target", ["files", "files/", "/read", "", "/"])
def test_a_target_that_names_no_tool_is_wrong_usage(
    folder: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, files=FILES)
    assert approves(target) == 2
    assert approves("files/*", "--digest", "0" * 8) == 2
    capsys.readouterr()


def test_unknown_names_are_answered_with_the_known_ones(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, files=FILES, mail=MAIL)
    assert approves("file/read") == 1
    assert "server 'file'. With pins there are: files, mail." in capsys.readouterr().err
    assert approves("files/wr\u0456te") == 1
    told = capsys.readouterr().err
    assert "files has no tool 'wr\\u0456te'. It has: extra, gone, kept, odd, plain, read." in told


def test_a_store_in_memory_or_one_that_is_not_there_is_said_to_be_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["mcp", "pins"], ["mcp", "pins", "approve", "files/read"]):
        assert run(arguments) == 1
        assert "does not exist: a gateway creates it" in capsys.readouterr().err
        assert not (folder / "pins.db").exists()
    write_config(folder, "memory:")
    for arguments in (["mcp", "pins"], ["mcp", "pins", "approve", "files/read"]):
        assert run(arguments) == 1
        assert "The store is memory:" in capsys.readouterr().err


@pytest.mark.full
def test_a_store_that_cannot_be_used_is_said_to_be_so_without_its_secrets(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "pins.db").write_bytes(b"no database" * 100)
    assert run(["mcp", "pins"]) == 1
    assert "cannot be used (it is no database)" in capsys.readouterr().err
    write_config(folder, "redis://:hidden-word@127.0.0.1:1/0")
    assert approves("files/read") == 1
    told = capsys.readouterr().err
    assert "cannot be used (nothing listens there)" in told
    assert "hidden-word" not in told


def test_an_invalid_file_is_exit_code_3_and_only_its_store_has_to_be_right(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, mail=MAIL)
    write_config(
        folder, "sqlite:///pins.db", routes="none", identity={"keys": [{"key": "${env:NONE}"}]}
    )
    assert run(["mcp", "pins"]) == 0
    write_config(folder, "ftp://nowhere")
    assert run(["mcp", "pins"]) == 3
    other = folder / "other.yaml"
    other.write_text(yaml.safe_dump({"store": {"url": "sqlite:///pins.db"}}), encoding="utf-8")
    assert run(["mcp", "pins", "--config", str(other)]) == 0
    assert run(["mcp", "pins", "--config", str(other), "approve", "mail/send"]) == 0
    assert approves("mail/send", "--config", str(other)) == 0
    capsys.readouterr()


class Busy(SQLitePins):
    """Somebody else writes first, once."""

    def __init__(self, path: Path, meanwhile: Callable[[Book], Book]) -> None:
        super().__init__(path)
        self._meanwhile: list[Callable[[Book], Book]] = [meanwhile]

    async def write(self, server: str, book: Book, *, was: int) -> int | None:
        kept = await self.read(server)
        assert kept is not None
        if self._meanwhile:
            await super().write(server, self._meanwhile.pop()(kept.book), was=kept.mark)
        return await super().write(server, book, was=was)


@pytest.mark.parametrize("same", [True, False])
def test_what_changes_under_the_hands_of_the_one_who_looks_is_not_approved(
    folder: Path,
    same: bool,  # noqa: FBT001 - a parameter of the table
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tidegate.cli.mcp_pins import approve_in  # noqa: PLC0415 - as the command does

    def meanwhile(kept: Book) -> Book:
        other = tool("plain", "x") if same else tool("read", "other")
        return observe(kept, survey([other]), now_s=5.0, is_whole=False).book

    keep(folder, files=FILES)

    async def body() -> int:
        store = Busy(folder / "pins.db", meanwhile)
        try:
            return await approve_in(store, "files", "read", None, show=False)
        finally:
            await store.close()

    if same:
        assert asyncio.run(body()) == 0
        assert states(folder)["read"] == "pinned"
    else:
        with pytest.raises(Exception, match="something else by now"):
            asyncio.run(body())
        assert states(folder)["read"] == "changed"
    capsys.readouterr()


@pytest.mark.full
def test_more_rows_than_anybody_reads_are_left_to_the_document(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = [tool(f"t{number}", "x") for number in range(pins_table.MOST_SHOWN + 50)]
    keep(folder, files=book(many, [*many[1:], tool("t0", "other")]))
    assert run(["mcp", "pins"]) == 4
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == pins_table.MOST_SHOWN + 1
    assert "files   t0 " in out.splitlines()[1]
    assert err.startswith("50 more lines are left out")
