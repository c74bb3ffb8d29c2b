"""Does `tidegate redact` filter, explain and test as its help says?"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidegate.cli.redact import redact

CONFIG = """identity: { keys: [{ key: "${env:NOT_SET_HERE}", principal: a, tenant: a }] }
redaction:
  allow: ["*@ok.example"]
  deny_list: [all.txt, "of-{tenant}.txt"]
  detectors: { jwt: { action: block }, ssn: { action: "off" }, email: { action: partial } }
  custom: [{ kind: BADGE, prefix: "B-", body: "[0-9]", min: 4, max: 6 }]
"""
TOKEN = "ey" + "JhbGciOiJIUzI1NiJ9" + ".ey" + "J" + "aB3dE5gH7j" * 6 + "." + "aB3dE5gH7j" * 4
BAD = """
import re
from tidegate.redaction.hits import Hit
from tidegate.redaction.spans import Kind


class Paid:
    family, rank, shortest, anchors = "paid", 200, 6, ((r"\\-", "(?<=T-)"),)
    samples = ["T-1234 paid"]

    def find(self, text, start, end):
        for found in re.compile("T-[0-9]{4}(?! paid)").finditer(text, start):
            if found.end() <= end:
                yield Hit(found.start(), found.end(), "paid", "paid", Kind("PAID", "paid"))


class Failing(Paid):
    def find(self, text, start, end):
        raise KeyError(text)


good = Paid()
good.find = lambda text, start, end: [
    Hit(found.start(), found.end(), "paid", "paid", Kind("PAID", "paid"))
    for found in re.compile("T-[0-9]{4}").finditer(text, start, end)
]
nothing = object()
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Run":
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("TIDEGATE_CONFIG", raising=False)
    return Run(tmp_path)


class Run:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, stdin: bytes | str = b"") -> Result:
        return CliRunner().invoke(redact, arguments, input=stdin, standalone_mode=False)

    def code(self, *arguments: str, stdin: bytes | str = b"") -> int:
        return int(self(*arguments, stdin=stdin).return_value)

    def configure(self) -> str:
        (self.folder / "all.txt").write_text("Jane Doe\n")
        (self.folder / "of-acme.txt").write_text("Max Roe\n")
        (self.folder / "gateway.yaml").write_text(CONFIG)
        return "gateway.yaml"


# ---- the filter ----------------------------------------------------------------------------------


def test_stdin_comes_out_masked(run: Run) -> None:
    result = run(stdin="mail jane@example.com, pay 4111 1111 1111 1111\n")
    assert result.stdout == "mail [REDACTED_EMAIL], pay [REDACTED_CARD]\n"
    assert (result.stderr, result.return_value) == ("", 0)


def test_a_file_and_a_dash_are_read(run: Run) -> None:
    (run.folder / "x.log").write_text("jane@example.com")
    assert run("x.log").stdout == "[REDACTED_EMAIL]"
    assert run("-", stdin="jane@example.com").stdout == "[REDACTED_EMAIL]"


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe \xed\xa0\x80 \xc3",
        b"caf\xc3\xa9 \xf0\x9f\x98\x80\r\n\x00\x1b[0m",
        b"\xf0\x9f",
        b"",
        "\ufeffx\u2028y".encode(),
        bytes(range(256)) * 300,
    ],
)
def test_bytes_that_are_no_text_pass_unchanged(run: Run, data: bytes) -> None:
    result = run(stdin=data)
    assert result.stdout_bytes == data


def test_values_beside_bytes_that_are_no_text_are_masked(run: Run) -> None:
    result = run(stdin=b"\xff jane@example.com\xff \xe2\x82 123-45-6789 \xc3")
    assert result.stdout_bytes == b"\xff [REDACTED_EMAIL]\xff \xe2\x82 [REDACTED_SSN] \xc3"


def test_presets_take_the_place_of_a_file(run: Run) -> None:
    run.configure()
    (run.folder / "gateway.yaml").rename(run.folder / "tidegate.yaml")
    text = "B-12345 jane@example.com 8.8.8.8"
    assert run("--preset", "strict", stdin=text).stdout == "B-12345 [REDACTED_EMAIL] [REDACTED_IP]"
    assert run("--preset", "code", stdin=text).stdout == text
    assert run(stdin=text).stdout == "[REDACTED_BADGE] [REDACTED_EMAIL_ecom] 8.8.8.8"


def test_a_file_gives_its_redaction_whatever_the_rest_of_it_needs(run: Run) -> None:
    name = run.configure()
    result = run("--config", name, stdin="Jane Doe, Max Roe, B-12345, 123-45-6789")
    assert result.stdout == "[REDACTED_DENIED], Max Roe, [REDACTED_BADGE], 123-45-6789"
    result = run("--config", name, "--tenant", "acme", stdin="Jane Doe, Max Roe")
    assert result.stdout == "[REDACTED_DENIED], [REDACTED_DENIED]"
    assert result.stderr == ""


def test_a_tenant_without_a_list_is_named_on_stderr(run: Run) -> None:
    result = run("--config", run.configure(), "--tenant", "typo", stdin="Jane Doe, Max Roe")
    assert result.stdout == "[REDACTED_DENIED], Max Roe"
    assert result.stderr == "No deny list belongs to the tenant 'typo'.\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_text_in_utf_16_is_refused_and_not_passed_on(run: Run, encoding: str) -> None:
    result = run(stdin="\ufeffpassword: hunter2!x".encode(encoding))
    assert result.stdout == ""
    assert str(getattr(result.exception, "message", "")) == (
        "The input is UTF-16 or UTF-32: convert it first (iconv -f UTF-16 -t UTF-8)."
    )


def test_a_broken_redaction_part_is_exit_code_3_with_line_and_column(run: Run) -> None:
    (run.folder / "tidegate.yaml").write_text(
        "server: { port: 70000 }\nredaction: { custom: [{ kind: A, regex: 'x+' }] }\n"
    )
    result = run()
    assert result.exit_code == 1  # click's own: `run` of tidegate.cli gives exit_code of the error
    assert getattr(result.exception, "exit_code", None) == 3
    assert str(getattr(result.exception, "message", "")).startswith(
        "tidegate.yaml:2:41: redaction.custom[0].regex: + has no greatest width"
    )


def test_a_detector_that_blocks_ends_the_output_before_what_it_found(run: Run) -> None:
    name = run.configure()
    text = "first line, B-12345\n" + "x " * 400 + f"{TOKEN} and more B-9999"
    result = run("--config", name, stdin=text)
    assert result.return_value == 1
    assert "ey" not in result.stdout
    assert "more" not in result.stdout
    assert result.stderr == "Blocked: the detector 'jwt' found something; nothing follows.\n"
    report = json.loads(run("--config", name, "--json", stdin=text).stderr)
    assert report == {"found": {"badge": 1}, "blocked": "jwt"}


def test_counts_are_told_when_asked_for(run: Run) -> None:
    text = "jane@example.com, joe@example.com, 123-45-6789"
    assert run("--summary", stdin=text).stderr == "Found: 2 email, 1 ssn.\n"
    assert run("--summary", stdin="x").stderr == "Found: nothing.\n"
    found = {"email": 2, "ssn": 1}
    assert json.loads(run("--json", stdin=text).stderr) == {"found": found, "blocked": None}


def test_a_file_that_is_not_there_is_one_line(run: Run) -> None:
    result = run("gone.log")
    assert getattr(result.exception, "exit_code", None) == 1
    assert str(getattr(result.exception, "message", "")) == "gone.log: No such file or directory"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--preset", "code", "--config", "x"],
        ["--preset", "code", "--tenant", "x"],
        ["--explain", "x", "file"],
        ["--explain", "x", "--selftest"],
        ["--preset", "lax"],
        ["--detector", "nowhere:X"],
        ["--detector", "json:loads"],
        ["--detector", "json"],
    ],
)
def test_what_does_not_fit_together_is_wrong_usage(run: Run, arguments: list[str]) -> None:
    assert getattr(run(*arguments).exception, "exit_code", None) == 2


# ---- explanations --------------------------------------------------------------------------------

CARD = "4111 1111 1111 1111"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mail jane@example.com", "5-21  email  partial: "),
        (f"pay {CARD}", "4-23  card  mask: 16 digits, Luhn check right"),
        ("pay 4111 1111 1111 1112", "4-23  card  kept: 16 digits, Luhn check failed"),
        ("123-45-6789", "0-11  ssn  kept: the detector ssn is off"),
        ("IBAN GB82 WEST 1234 5698 7654 32", "5-32  iban  mask: "),
        ("IBAN GB83 WEST 1234 5698 7654 32", "5-32  iban  kept: "),
        ("key sk-" + "a1B2" * 6, "4-31  key/sk_key  mask: prefix sk- and 24 characters"),
        ("key sk-abc", "4-10  key  kept: "),
        (TOKEN, "jwt  block: "),
        ("password: hunter2!x", "10-19  keyword/keyword_value  mask: "),
        ("password: hello", "10-15  keyword  kept: "),
        ("https://u:pw-1234@h.example", "8-17  url_credentials  mask: "),
        ("Authorization: Bearer abcdef123456", "22-34  authorization  mask: "),
        ("git@github.com:org/x", "0-14  email  kept: git@ names a repository"),
        ("B-12345", "0-7  badge  mask: what the detector badge describes"),
        ("B-123", "0-5  badge  kept: 3 characters behind the prefix, a value has 4 or more"),
        ("B-1234567", "0-9  badge  kept: 7 characters behind the prefix, a value has 6 at most"),
        ("xB-12345", "1-8  badge  kept: a letter or digit stands in front of it"),
        ("call Jane Doe", "5-13  deny_list  mask: a literal of a deny list"),
        ("my name is Max Roe", "11-18  names/name_introduction  kept: the detector names is off"),
        ("from 8.8.8.8", "5-12  ip/ipv4  kept: the detector ip is off"),
        ("joe@ok.example", "0-14  email  kept: allowed"),
    ],
)
@pytest.mark.full
def test_an_explanation_names_place_detector_rule_and_reason(
    run: Run, text: str, line: str
) -> None:
    result = run("--config", run.configure(), "--explain", text)
    assert result.return_value == 0
    assert line in result.stdout, result.stdout


def test_an_explanation_begins_with_the_text_as_it_would_leave(run: Run) -> None:
    name = run.configure()
    shown = run("--config", name, "--explain", "B-12345, ok").stdout.splitlines()[0]
    assert shown == "[REDACTED_BADGE], ok"
    assert run("--config", name, "--explain", TOKEN).stdout.startswith("Refused as a whole.\n")
    assert run("--explain", "a plain text").stdout.splitlines() == [
        "a plain text",
        "Nothing in it is, or looks like, what the detectors know.",
    ]


def test_an_explanation_as_json_has_every_field(run: Run) -> None:
    document = json.loads(run("--explain", "to jane@example.com", "--json").stdout)
    (place,) = document["places"]
    assert (document["shown"], place["start"], place["end"]) == ("to [REDACTED_EMAIL]", 3, 19)
    assert (place["family"], place["rule"], place["outcome"]) == ("email", "email", "mask")
    assert "jane" not in place["reason"]


# ---- detectors of one's own ----------------------------------------------------------------------


def test_a_detector_of_a_module_takes_part(run: Run) -> None:
    (run.folder / "own_redactors_a.py").write_text(BAD)
    assert run("--detector", "own_redactors_a:good", stdin="see T-1234 x").stdout == (
        "see [REDACTED_PAID] x"
    )


def test_a_detector_that_fails_ends_the_output_without_a_word_of_the_text(run: Run) -> None:
    (run.folder / "own_redactors_b.py").write_text(BAD)
    result = run("--detector", "own_redactors_b:Failing", stdin="some words, T-1234 secret")
    assert result.stdout == ""
    message = str(getattr(result.exception, "message", ""))
    assert message.startswith("A detector failed (KeyError)")
    assert "secret" not in message


@pytest.mark.full
def test_the_selftest_finds_nothing_wrong_with_detectors_made_of_data(run: Run) -> None:
    result = run("--config", run.configure(), "--selftest")
    assert result.return_value == 0
    lines = result.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["badge", "deny_list"]
    assert all(line.endswith(": fine") for line in lines)


def test_the_selftest_catches_a_detector_that_looks_ahead(run: Run) -> None:
    (run.folder / "own_redactors_c.py").write_text(BAD)
    result = run("--preset", "default", "--detector", "own_redactors_c:Paid", "--selftest")
    assert result.return_value == 4
    assert "paid: 22 texts, " in result.stdout
    assert ": BROKEN" in result.stdout
    assert "it depends on how the text is cut, cut after " in result.stdout
    assert '    text   "' in result.stdout
    report = json.loads(run("--detector", "own_redactors_c:Paid", "--selftest", "--json").stdout)
    assert report[0]["detector"] == "paid"
    assert "it depends on how the text is cut" in [each["law"] for each in report[0]["broken"]]


def test_the_selftest_tries_the_lines_of_a_file_without_showing_them(run: Run) -> None:
    (run.folder / "own_redactors_d.py").write_text(BAD)
    (run.folder / "lines.txt").write_text("Order T-1234 paid by Jane\n\nnothing here\n")
    result = run("--detector", "own_redactors_d:good", "--selftest", "lines.txt")
    assert result.return_value == 0
    assert "all detectors, the lines of the file: 2 texts, " in result.stdout
    result = run("--detector", "own_redactors_d:Paid", "--selftest", "lines.txt")
    assert result.return_value == 4
    assert "Jane" not in result.stdout


@pytest.mark.full
def test_the_selftest_never_shows_a_literal_of_a_list(run: Run) -> None:
    name = run.configure()
    for arguments in (("--selftest",), ("--selftest", "--json")):
        assert "Jane" not in run("--config", name, *arguments).output


def test_without_detectors_of_ones_own_the_selftest_says_so(run: Run) -> None:
    result = run("--preset", "strict", "--selftest")
    assert (result.return_value, result.stdout.startswith("No detectors of your own")) == (0, True)
