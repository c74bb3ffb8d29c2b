"""What limits have used can be read beside a running gateway, and only read."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate.cli import run
from tidegate.clock import SystemClock
from tidegate.config import load_config, values
from tidegate.limits import SQLiteLedger
from tidegate.limits.ledger import Need, scope_key, scope_names
from tidegate.policy import Principal

ENVIRON = {"ACME_KEY": "-".join(("acme", "key", "of", "the", "tests"))}
LIMITS = [
    {"name": "per-minute", "tokens": 1000},
    {"name": "calls", "requests": 9, "window_s": 3600, "per": "key"},
    {"name": "slots", "concurrent": 2, "per": "principal", "match": {"tenants": ["acme"]}},
    {"name": "all", "tokens": 5000, "per": "global"},
]
CONFIG = {
    "store": {"url": "sqlite:///books.db"},
    "identity": {
        "keys": [
            {"key": "${env:ACME_KEY}", "principal": "vera", "tenant": "acme", "roles": ["a"]},
            {"sha256": "0" * 64, "principal": "ben", "tenant": "beta"},
        ]
    },
    "limits": LIMITS,
    "providers": {"primary": {"base_url": "http://127.0.0.1:1/v1"}},
}
# Known to the store alone, as by a token of an issuer.
ODD = Principal("o/d%d", "third/party", (), "k9")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("TIDEGATE_CONFIG", "ACME_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACME_KEY", ENVIRON["ACME_KEY"])
    write(tmp_path)
    return tmp_path


def write(folder: Path, **parts: Any) -> None:
    (folder / "tidegate.yaml").write_text(yaml.safe_dump(CONFIG | parts), encoding="utf-8")


def use(folder: Path) -> SQLiteLedger:
    """One settled call and one under way for acme, one for somebody the file does not name."""

    async def body() -> SQLiteLedger:
        config = load_config(folder / "tidegate.yaml", ENVIRON)
        table = values.limit_table(config)
        vera = values.callers(config)[0]
        ledger = SQLiteLedger(folder / "books.db", SystemClock(), wait_s=5.0)
        await ledger.open()
        for number, who in enumerate((vera, vera, ODD)):
            owed = table.charges(who, route="default", need=Need(10, 90))
            await ledger.reserve(f"r{number}", "me", owed, lease_s=600.0)
        await ledger.settle("r0", "me", Need(12, 131))
        await ledger.close()
        return ledger

    return asyncio.run(body())


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[tuple[str, ...], Any]:
    assert run(["limits", *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["store"] == "sqlite:///books.db"
    return {(row["limit"], *row["scope"]): row for row in found["limits"]}


def test_each_limit_is_shown_in_each_scope_that_the_file_or_the_store_knows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use(folder)
    found = rows(capsys)
    key_id = values.callers(load_config(folder / "tidegate.yaml", ENVIRON))[0].key_id
    assert list(found) == [
        ("per-minute", "acme"),
        ("per-minute", "beta"),
        ("per-minute", "third/party"),
        ("calls", "acme", "vera", key_id),
        ("calls", "beta", "ben", "0" * 8),
        ("calls", "third/party", "o/d%d", "k9"),
        ("slots", "acme", "vera"),
        ("all",),
    ]
    tokens = found["per-minute", "acme"]
    assert {name: tokens[name] for name in ("unit", "per", "cap", "window_s")} == {
        "unit": "tokens",
        "per": "tenant",
        "cap": 1000,
        "window_s": 60.0,
    }
    figures = ("used", "reserved", "free", "overrun")
    assert [tokens[name] for name in figures] == [143, 100, 757, 43]
    assert 0 < tokens["next_free_s"] <= 60.25
    idle = found["per-minute", "beta"]
    assert [idle[name] for name in (*figures, "next_free_s")] == [0, 0, 1000, 0, None]
    slots = found["slots", "acme", "vera"]
    assert [slots[name] for name in (*figures, "next_free_s")] == [0, 1, 1, 0, None]
    assert [found[("all",)][name] for name in figures] == [143, 200, 4657, 43]


def test_one_tenant_is_shown_with_what_all_share(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use(folder)
    assert list(rows(capsys, "third/party")) == [
        ("per-minute", "third/party"),
        ("calls", "third/party", "o/d%d", "k9"),
        ("all",),
    ]


def test_for_people_it_is_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    use(folder)
    assert run(["limits", "acme"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split("  ")[0] == "limit"
    assert len(shown) == 5
    cells = [cell for cell in shown[1].split("  ") if cell]
    assert [cell.strip() for cell in cells[:2]] == ["per-minute (tokens)", "tenant acme"]
    assert [cell.strip() for cell in cells[2:6]] == ["1000", "143", "100", "757"]
    assert cells[6].strip().endswith("s")
    assert not any(line != line.rstrip() for line in shown)


def crowd(folder: Path, count: int) -> None:
    """So many tenants that used some of a limit: the first all of it, each following one less."""
    use(folder)
    end_us = round(SystemClock().now_s()) * 1_000_000
    used = [(f"tokens/tenant:t{at:05}/per-minute", 1_000 - at % 1_000) for at in range(count)]
    with closing(sqlite3.connect(folder / "books.db")) as db, db:
        rows = [(key, amount, end_us, end_us + 60_000_000) for key, amount in used]
        db.executemany("INSERT INTO limit_counters VALUES (?, ?, ?, ?)", rows)
        buckets = [(key, end_us, amount) for key, amount in used]
        db.executemany("INSERT INTO limit_buckets VALUES (?, ?, ?, 0, 0)", buckets)


def test_of_a_crowd_the_table_shows_the_fullest_and_json_all(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd(folder, 1_050)
    assert run(["limits"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "58 more lines have more left: name a tenant, or take --json.\n"
    names = [line.split()[3] for line in shown.out.splitlines()[1:] if " tenant t" in line]
    assert len(shown.out.splitlines()) == 1_001
    assert names == sorted(names)
    assert {"t00000", "t01000", "t00100"} <= set(names)
    assert "t00999" not in names
    assert len(rows(capsys)) == 1_058
    assert run(["limits", "t00999"]) == 0
    assert "t00999" in capsys.readouterr().out


def test_looking_changes_not_a_byte_of_the_store(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use(folder)
    before = (folder / "books.db").read_bytes()
    rows(capsys)
    assert (folder / "books.db").read_bytes() == before


def test_the_secrets_of_the_service_are_not_needed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(folder)
    monkeypatch.delenv("ACME_KEY")
    found = rows(capsys)
    assert found["per-minute", "acme"]["used"] == 143
    # Who is named by the file alone is not known without it.
    assert ("per-minute", "beta") not in found


def test_a_limit_that_is_wrong_is_said_as_by_check(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, limits=[{"name": "x", "tokns": 1}])
    assert run(["limits"]) == 3
    assert "tidegate.yaml:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"store": {"url": "memory:"}}, "only the gateway itself knows its counts"),
        ({}, "does not exist: a gateway creates it when it starts"),
    ],
)
def test_a_store_that_cannot_be_read_is_said_in_a_line(
    parts: dict[str, Any], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, **parts)
    assert run(["limits"]) == 1
    shown = capsys.readouterr()
    assert said in shown.err
    assert len(shown.err.splitlines()) == 1
    assert not (folder / "books.db").exists()


def test_a_file_that_is_no_store_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "books.db").write_bytes(b"not a database, but long enough to be looked at" * 50)
    assert run(["limits"]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_an_unknown_tenant_and_no_limits_at_all_are_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use(folder)
    write(folder, limits=LIMITS[:3])
    assert run(["limits", "nobody"]) == 1
    assert "'nobody'" in capsys.readouterr().err
    write(folder, limits=[])
    assert run(["limits"]) == 0
    assert "No limits are configured." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["acme", "a/b", "%2F", "a%b", "é", "tenant:x"])
def test_the_names_of_a_scope_come_back_as_they_were(name: str) -> None:
    who = Principal(name, name, (), name)
    assert scope_names(scope_key("key", who)) == ("key", name, name, name)
    assert scope_names(scope_key("principal", who)) == ("principal", name, name)
    issued = Principal(name, name, (), name, issuer=name)
    assert scope_names(scope_key("principal", issued)) == ("principal", name, name, name)
    assert scope_names(scope_key("tenant", who)) == ("tenant", name)
    assert scope_names(scope_key("global", who)) == ("global",)
