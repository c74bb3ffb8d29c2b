"""Is what `tidegate providers` says true, short, and the same in a pipe?"""

import json
import re
from itertools import product
from pathlib import Path

import click
import msgspec
import pytest

from tidegate.cli.providers import Address, address_of, report_of
from tidegate.cli.providers_table import HEADINGS, padded, table, wants_color, written
from tidegate.config import load_config_text
from tidegate.gateway.target_rows import Credential, TargetRow, TargetsReport, of_workers

ADDRESS = Address("http://127.0.0.1:8081/targets")
TOKEN = "-".join(("token", "of", "an", "operator", "16"))


def row(**known: object) -> TargetRow:
    usual: dict[str, object] = {
        "provider": "primary",
        "model": None,
        "credential": Credential(0, "aaaaaaaa"),
        "routes": ("default",),
        "state": "closed",
        "reason": None,
        "cooling_s": 0.0,
        "wait_s": 0.0,
        "share": 1.0,
        "first_token_ms": None,
        "successes": 0,
        "failures": 0,
        "recent": (),
    }
    return TargetRow(**(usual | known))  # type: ignore[arg-type]


def shown(*rows: TargetRow) -> list[dict[str, str]]:
    lines = table(TargetsReport(revision="r", targets=rows))
    assert lines[0].cells == HEADINGS
    return [dict(zip(HEADINGS, line.cells, strict=True)) for line in lines[1:]]


def test_a_target_that_was_never_asked_stands_there_like_the_others() -> None:
    assert shown(row()) == [
        {
            "target": "primary",
            "credential": "#0 aaaaaaaa",
            "state": "closed",
            "free in": "-",
            "first token": "-",
            "ok": "0",
            "failed": "0",
            "last outcomes": "never asked",
            "routes": "default",
        }
    ]


def test_a_target_with_a_past_shows_all_of_it() -> None:
    (line,) = shown(
        row(
            model="large",
            credential=None,
            routes=("fast", "large"),
            state="open",
            reason="consecutive",
            wait_s=3.2,
            share=0.0,
            first_token_ms=812.4,
            successes=120,
            failures=6,
            recent=("ok", "ok", "timeout", "timeout", "timeout", "server_error"),
        )
    )
    assert line == {
        "target": "primary/large",
        "credential": "-",
        "state": "open: failures in a row",
        "free in": "3.2s",
        "first token": "812 ms",
        "ok": "120",
        "failed": "6",
        "last outcomes": "ok x2, timeout x3, server_error",
        "routes": "fast, large",
    }


@pytest.mark.parametrize(
    ("known", "state", "mood"),
    [
        ({"state": "open", "reason": "ratio"}, "open: too many failures", "bad"),
        ({"state": "open", "reason": "slow"}, "open: too slow", "bad"),
        ({"state": "open", "reason": "ramp"}, "open: failed again after recovery", "bad"),
        ({"state": "open", "reason": "probe"}, "open: the probe failed", "bad"),
        ({"state": "open", "reason": "trip"}, "open: refused what only you can mend", "bad"),
        ({"state": "open", "reason": "later word"}, "open: later word", "bad"),
        ({"state": "open"}, "open: unknown", "bad"),
        ({"state": "open", "cooling_s": 9.0, "reason": "slow"}, "open: too slow", "bad"),
        ({"state": "half_open"}, "half open: next is a probe", "careful"),
        ({"state": "half_open", "wait_s": 2.0}, "half open: probing", "careful"),
        ({"cooling_s": 2.0}, "cooling", "careful"),
        ({"share": 0.25}, "closed: recovering, 25%", "careful"),
        ({}, "closed", "good"),
    ],
)
def test_every_state_has_its_words_and_its_mood(
    known: dict[str, object], state: str, mood: str
) -> None:
    line = table(TargetsReport(revision="r", targets=(row(**known),)))[1]
    assert (line.cells[HEADINGS.index("state")], line.mood) == (state, mood)


def test_workers_that_agree_are_one_line_with_their_sums() -> None:
    one = row(successes=3, failures=1, first_token_ms=640.0, recent=("ok", "timeout", "ok"))
    two = row(successes=4, first_token_ms=812.0, recent=("ok",))
    (line,) = shown(*of_workers({1: (one,), 2: (two,)}))
    assert (line["target"], line["state"], line["ok"], line["failed"]) == (
        "primary",
        "closed",
        "7",
        "1",
    )
    assert line["first token"] == "640 ms to 812 ms"
    assert line["last outcomes"] == "ok x3, timeout"


def test_workers_that_differ_show_the_worst_and_then_each() -> None:
    open_one = row(state="open", reason="slow", wait_s=4.0, share=0.0)
    lines = shown(*of_workers({1: (row(), row(provider="b")), 2: (open_one, row(provider="b"))}))
    assert [(line["target"], line["state"], line["free in"]) for line in lines] == [
        ("primary", "open: too slow in 1 of 2 workers", "4s"),
        ("  worker 1", "closed", "-"),
        ("  worker 2", "open: too slow", "4s"),
        ("b", "closed", "-"),
    ]


def test_the_page_shows_what_the_command_prints() -> None:
    tired = row(
        credential=Credential(0, "9f86d081"),
        state="open",
        reason="consecutive",
        wait_s=4.2,
        first_token_ms=640.2,
        successes=118,
        failures=5,
        recent=("ok",) * 5 + ("timeout",) * 5,
    )
    well = row(
        provider="backup",
        credential=Credential(0, "60303ae2"),
        first_token_ms=812.0,
        successes=41,
        recent=("ok",) * 10,
    )
    shown = written(table(TargetsReport(revision="r", targets=(tired, well))), color=False)
    page = Path(__file__).parents[3] / "docs" / "failover.md"
    assert "```\n" + "\n".join(shown) + "\n```\n" in page.read_text()


def test_columns_stand_under_their_headings() -> None:
    cells = padded(table(TargetsReport(revision="r", targets=(row(), row(provider="p" * 30)))))
    assert len({tuple(len(text) for text in line) for line in cells}) == 1
    assert cells[1][HEADINGS.index("ok")] == " 0"
    assert cells[0][0] == "target".ljust(30)


def test_no_answer_moves_the_cursor_or_renames_the_terminal() -> None:
    odd = row(provider="p\x1b[2J\x07", model="m\n", routes=("r\u202e",), recent=("\x9b31m",))
    lines = table(TargetsReport(revision="r", targets=of_workers({1: (odd,), 2: (odd,)})))
    assert all(text.isprintable() for line in lines for text in line.cells)
    assert lines[1].cells[0] == "p\\u001b[2J\\u0007/m\\u000a"


@pytest.mark.parametrize(
    ("environ", "is_terminal", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm"}, True, True),
    ],
)
def test_colors_are_for_terminals_of_those_who_want_them(
    environ: dict[str, str], is_terminal: object, wanted: object
) -> None:
    assert wants_color(environ, is_terminal=bool(is_terminal)) is wanted


def test_color_adds_nothing_but_color() -> None:
    lines = table(TargetsReport(revision="r", targets=(row(), row(provider="b", state="open"))))
    plain, colored = (written(lines, color=color) for color in (False, True))
    assert [re.sub("\x1b\\[[0-9]+m", "", text) for text in colored] == plain
    assert colored[0] == plain[0]
    assert all("\x1b[" in text for text in colored[1:])


def server(**admin: object) -> Address:
    words = {"host": admin.pop("host", None), "port": admin.pop("port", None), **admin}
    inner = ", ".join(f"{name}: {json.dumps(value)}" for name, value in words.items() if value)
    text = f'server: {{ allowed_hosts: ["gw.example"], admin: {{ {inner} }} }}'
    return address_of(load_config_text(text, {"T": TOKEN}, name="f.yaml").server)


@pytest.mark.parametrize(
    ("admin", "address"),
    [
        ({"port": 9}, Address("http://127.0.0.1:9/targets")),
        ({"host": "::1"}, Address("http://[::1]:8081/targets")),
        (
            {"host": "0.0.0.0", "token": "${env:T}"},  # noqa: S104 - a file's words
            Address("http://127.0.0.1:8081/targets", TOKEN, "gw.example"),
        ),
        (
            {"host": "::", "token": "${env:T}"},
            Address("http://[::1]:8081/targets", TOKEN, "gw.example"),
        ),
        (
            {"host": "10.0.0.7", "token": "${env:T}"},
            Address("http://10.0.0.7:8081/targets", TOKEN, "gw.example"),
        ),
    ],
)
def test_it_asks_where_the_file_says_as_that_listener_wants_it(
    admin: dict[str, object], address: Address
) -> None:
    assert server(**admin) == address


def test_a_port_that_the_system_chose_is_not_guessed() -> None:
    config = load_config_text("server: { admin: { port: 0 } }", {}, name="f.yaml")
    with pytest.raises(click.ClickException, match="the system chose it"):
        address_of(config.server)


def refusal(code: str) -> bytes:
    return json.dumps({"error": {"type": "t", "code": code, "message": "m"}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, refusal("gateway.unauthenticated"), "wants a token, and the file names none"),
        (404, refusal("gateway.not_found"), "another listener, or an older release"),
        (421, refusal("gateway.invalid_request"), "refuses with 421 gateway.invalid_request"),
        (503, refusal("gateway.overloaded"), "refuses with 503 gateway.overloaded"),
    ],
)
def test_a_refusal_of_ours_says_what_to_mend(status: int, body: bytes, says: str) -> None:
    with pytest.raises(click.ClickException, match=says) as raised:
        report_of(ADDRESS, status, body)
    assert raised.value.exit_code == 1
    assert ADDRESS.url in raised.value.message


def test_a_token_that_is_refused_is_not_shown() -> None:
    address = Address(ADDRESS.url, TOKEN)
    with pytest.raises(click.ClickException, match=r"not take the server\.admin\.token") as raised:
        report_of(address, 401, refusal("gateway.unauthenticated"))
    assert TOKEN not in raised.value.message


FOREIGN = [
    b"",
    b"<html>welcome</html>",
    b"{}",
    b"[]",
    b"null",
    b'"gateway.unauthenticated"',
    b'{"targets": []}',
    b'{"revision": "r", "targets": [{"provider": "p"}]}',
    b'{"error": "no"}',
    b'{"error": {"code": 7}}',
    b'{"error": {"code": "invalid_api_key", "message": "m"}}',
    b"[" * 100_000,
    b"\xff\xfe",
]


@pytest.mark.parametrize(("status", "body"), list(product([200, 302, 401, 404, 500], FOREIGN)))
def test_whatever_a_foreign_server_says_it_is_called_foreign(status: int, body: bytes) -> None:
    with pytest.raises(click.ClickException, match="not the admin listener of tidegate") as raised:
        report_of(ADDRESS, status, body)
    assert raised.value.exit_code == 1
    assert "welcome" not in raised.value.message


@pytest.mark.parametrize("name", ["wait_s", "cooling_s", "first_token_ms", "successes"])
@pytest.mark.parametrize("value", [-1, 1e300, "1", None, [], 10**400])
def test_a_report_with_numbers_that_cannot_be_is_nobody_of_ours(name: str, value: object) -> None:
    report = msgspec.to_builtins(TargetsReport(revision="r", targets=(row(),)))
    if name != "first_token_ms" or value is not None:
        report["targets"][0][name] = value
        with pytest.raises(click.ClickException, match="not the admin listener"):
            report_of(ADDRESS, 200, json.dumps(report).encode())


def test_a_report_is_taken_as_it_is_and_later_members_do_not_hurt() -> None:
    report = TargetsReport(revision="r", missing=(2,), targets=(row(worker=1),))
    document = msgspec.to_builtins(report) | {"later": 1}
    assert report_of(ADDRESS, 200, json.dumps(document).encode()) == report
