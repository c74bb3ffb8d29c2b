import os
import pickle
from pathlib import Path

import pytest

from tidegate.config import Config, ConfigInvalid, load_config
from tidegate.config.denylists import Bounds, read_deny_files
from tidegate.config.policies import Policies, server_redaction
from tidegate.redaction import BlockedContent
from tidegate.redaction.tenants import TenantPolicies

DENIED = "[REDACTED_DENIED]"
KEYS = """identity:
  keys:
    - { sha256: "{digit}", principal: acme, tenant: acme, roles: [tenant] }
""".replace("{digit}", "1" * 64)


def write(folder: Path, redaction: str, **files: str) -> Path:
    (folder / "lists").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / "lists" / name).with_suffix(".txt").write_text(text, encoding="utf-8")
    path = folder / "tidegate.yaml"
    path.write_text(KEYS + f"redaction: {{ {redaction} }}\n", encoding="utf-8")
    return path


def policies(config: Config) -> TenantPolicies:
    return Policies(config.deny_files, hash_key=b"key").of(config.redaction)


def said(path: Path) -> list[str]:
    try:
        config = load_config(path, {})
    except ConfigInvalid as invalid:
        return [f"{problem.path}: {problem.wrong}" for problem in invalid.problems]
    return [f"{warning.path}: {warning.wrong}" for warning in config.warnings]


# ---- files ---------------------------------------------------------------------------------------


def test_a_list_is_text_with_comments_blank_lines_and_any_line_ends(tmp_path: Path) -> None:
    text = "# names\n\n Jane Doe \r\n\\#4711\r\n\ufeffx y\n  # indented\nMax"
    (tmp_path / "names.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = read_deny_files("names.txt", tmp_path)
    assert found.everybody == ("Jane Doe", "#4711", "\ufeffx y", "Max")
    assert (found.tenants, found.faults) == ({}, ())


def test_tenants_are_found_by_listing_the_directory(tmp_path: Path) -> None:
    for name in ("acme", "acme%2Feu", "a%3Ab", "A.b_c@d+e-f", "Acme"):
        (tmp_path / f"of-{name}.txt").write_text(f"Jane of {name}")
    for name in ("of-acme.txt~", "acme.txt", ".of-acme.txt", "of-.txt", "of-.hidden.txt"):
        (tmp_path / name).write_text("nobody")
    found = read_deny_files("of-{tenant}.txt", tmp_path)
    assert sorted(found.tenants) == ["A.b_c@d+e-f", "Acme", "a:b", "acme", "acme/eu"]
    assert found.tenants["acme/eu"] == ("Jane of acme%2Feu",)
    assert found.faults == ()


def test_no_name_of_a_tenant_leads_out_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("Max Secret")
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "a.txt").write_text("Jane")
    for tenant in ("../secret", "/etc/passwd", "a/../../secret", "..%2Fsecret", "%2e%2e/secret"):
        assert tenant not in read_deny_files("lists/{tenant}.txt", tmp_path).tenants


@pytest.mark.parametrize("name", ["a b.txt", "%41.txt", "a%2fb.txt", "\u00e4.txt", "-a.txt"])
def test_a_file_that_no_tenant_can_have_is_a_warning(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("Jane")
    (tmp_path / "acme.txt").write_text("Max")
    found = read_deny_files("{tenant}.txt", tmp_path)
    assert list(found.tenants) == ["acme"]
    assert [(fault.grave, name in fault.wrong) for fault in found.faults] == [(False, True)]


def test_what_is_no_ordinary_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    for name in ("pipe.txt", "folder.txt", "loop.txt", "/dev/zero", "missing.txt"):
        found = read_deny_files(name, tmp_path)
        assert (found.everybody, [fault.grave for fault in found.faults]) == ((), [True]), name


@pytest.mark.parametrize(
    ("pattern", "bounds", "wrong"),
    [
        ("many.txt", Bounds(literals=2), "many.txt has more than 2 literals"),
        ("many.txt", Bounds(file_bytes=8), "the file many.txt has more than 8 bytes"),
        ("{tenant}.txt", Bounds(files=1), "more than 1 files"),
    ],
)
def test_a_list_has_bounds(tmp_path: Path, pattern: str, bounds: Bounds, wrong: str) -> None:
    for name in ("many.txt", "other.txt"):
        (tmp_path / name).write_text("ab\n# c\ncd\nef\n")
    (fault,) = read_deny_files(pattern, tmp_path, bounds).faults
    assert (fault.wrong, fault.grave) == (wrong, True)
    assert not read_deny_files(pattern, tmp_path).faults


def test_no_message_holds_a_literal(tmp_path: Path) -> None:
    secret = "Jane " * 60
    (tmp_path / "a.txt").write_text(f"{secret}\nx\n--\n")
    (tmp_path / "b.txt").write_bytes(b"Jane\xff\n")
    faults = [f for name in "ab" for f in read_deny_files(f"{name}.txt", tmp_path).faults]
    assert len(faults) == 4
    assert not any("Jane" in fault.wrong + fault.right for fault in faults)


def test_a_file_full_of_mistakes_is_reported_by_its_first_ones(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n" * 1000)
    assert len(read_deny_files("a.txt", tmp_path).faults) == 3


def test_lists_are_stale_once_anything_that_was_read_is_another(tmp_path: Path) -> None:
    one, other = tmp_path / "of-a.txt", tmp_path / "of-b.txt"
    one.write_text("Jane")
    (tmp_path / "unrelated.txt").write_text("x")
    single, each = (read_deny_files(name, tmp_path) for name in ("of-a.txt", "of-{tenant}.txt"))
    (tmp_path / "unrelated.txt").write_text("xyz")
    assert (single.stale, each.stale) == (False, False)
    other.write_text("Max")
    assert (single.stale, each.stale) == (False, True)
    one.write_text("Jane Doe")
    assert (single.stale, each.stale) == (True, True)
    one.unlink()
    assert read_deny_files("of-a.txt", tmp_path).stale is False
    one.mkdir()
    assert read_deny_files("gone/{tenant}.txt", tmp_path).stale is False


# ---- what check says -----------------------------------------------------------------------------


def test_a_tenant_with_a_key_but_without_a_file_is_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "deny_list: ['lists/{tenant}.txt']", acmo="Jane Doe")
    assert said(path) == ["redaction.deny_list[0]: the tenant 'acme' has no file"]
    write(tmp_path, "deny_list: ['lists/{tenant}.txt']", acme="# none")
    assert said(path) == []


def test_an_empty_list_of_everybody_is_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "deny_list: [lists/all.txt]", all="# nothing yet\n")
    assert said(path) == ["redaction.deny_list[0]: no literal stands in this file"]


def test_a_directory_without_any_such_file_is_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "deny_list: ['lists/x-{tenant}.txt']")
    assert said(path) == ["redaction.deny_list[0]: no file has such a name"]


# ---- policies ------------------------------------------------------------------------------------


def test_each_tenant_has_the_lists_of_everybody_and_its_own(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "deny_list: [lists/all.txt, 'lists/{tenant}.txt']",
        all="Jane Doe",
        acme="Max Roe",
        other="Eva Poe",
    )
    made = policies(load_config(path, {}))
    text = "Jane Doe, Max Roe, Eva Poe"
    assert made.everybody.redact(text).text == f"{DENIED}, Max Roe, Eva Poe"
    assert made.for_tenant("nobody") is made.everybody
    assert made.for_tenant("acme").redact(text).text == f"{DENIED}, {DENIED}, Eva Poe"
    assert made.for_tenant("other").redact(text).text == f"{DENIED}, Max Roe, {DENIED}"


def test_a_reload_reads_the_lists_again(tmp_path: Path) -> None:
    path = write(tmp_path, "deny_list: [lists/all.txt]", all="Jane Doe")
    before = load_config(path, {})
    write(tmp_path, "deny_list: [lists/all.txt]", all="Max Roe")
    after = load_config(path, {})
    assert policies(before).everybody.redact("Jane Doe Max Roe").text == f"{DENIED} Max Roe"
    assert policies(after).everybody.redact("Jane Doe Max Roe").text == f"Jane Doe {DENIED}"
    assert before.revision == after.revision


def test_the_literals_travel_with_the_configuration(tmp_path: Path) -> None:
    path = write(tmp_path, "deny_list: [lists/all.txt]", all="Jane Doe")
    config = pickle.loads(pickle.dumps(load_config(path, {})))  # noqa: S301 - our own
    (tmp_path / "lists" / "all.txt").unlink()
    assert policies(config).everybody.redact("Jane Doe").text == DENIED
    assert "Jane" not in repr(config)


@pytest.mark.parametrize(("action", "shown"), [("'off'", "Jane Doe"), ("report", "Jane Doe")])
def test_the_action_of_the_lists_is_that_of_a_detector(
    tmp_path: Path, action: str, shown: str
) -> None:
    detectors = f"detectors: {{ deny_list: {{ action: {action} }} }}"
    path = write(tmp_path, f"deny_list: [lists/all.txt], {detectors}", all="Jane Doe")
    assert policies(load_config(path, {})).everybody.redact("Jane Doe").text == shown


def test_a_listed_value_can_block(tmp_path: Path) -> None:
    detectors = "detectors: { deny_list: { action: block } }"
    path = write(tmp_path, f"deny_list: ['lists/{{tenant}}.txt'], {detectors}", acme="Jane Doe")
    made = policies(load_config(path, {}))
    with pytest.raises(BlockedContent, match="deny_list"):
        made.for_tenant("acme").redact("to Jane Doe")
    assert made.for_tenant("other").redact("to Jane Doe").text == "to Jane Doe"


def test_a_section_without_lists_has_one_policy(tmp_path: Path) -> None:
    path = write(tmp_path, "preset: strict")
    made = policies(load_config(path, {}))
    assert made.for_tenant("acme") is made.everybody


def test_every_key_of_a_section_reaches_the_policy(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "preset: code, allow: ['*@ok.example'], custom: ["
        "{ kind: BADGE, prefix: 'B-', body: '[0-9]', min: 4, max: 6 },"
        "{ kind: ROOM, regex: 'R[0-9]{3}', action: hash },"
        "{ kind: GONE, regex: 'G[0-9]{3}', action: 'off' } ],"
        "detectors: { email: { action: partial }, phone: { regions: [GB] }, names: {},"
        " ssn: { action: 'off' }, card: { action: report } }",
    )
    made = policies(load_config(path, {})).everybody
    assert made.redact("B-1234 R123 G123 jane.doe@example.com joe@ok.example").text == (
        f"[REDACTED_BADGE] {made.redact('R123').text} G123 [REDACTED_EMAIL_ecom] joe@ok.example"
    )
    assert made.redact("R123").text.startswith("[REDACTED_ROOM_")
    assert made.regions == {"phone": ("GB",)}
    assert (
        made.redact("my name is Jane, 123-45-6789").text
        == "my name is [REDACTED_NAME], 123-45-6789"
    )
    assert made.actions["card"] == "report"


def test_the_same_key_gives_the_same_digests(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "detectors: { email: { action: hash } }"), {})
    one, other = (Policies({}, hash_key=key).of(config.redaction) for key in (b"a", b"b"))
    again = Policies({}, hash_key=b"a").of(config.redaction)
    text = "jane@example.com"
    assert one.everybody.redact(text).text == again.everybody.redact(text).text
    assert one.everybody.redact(text).text != other.everybody.redact(text).text


def test_sections_share_compiled_lists(tmp_path: Path) -> None:
    path = write(tmp_path, "deny_list: [lists/all.txt]", all="Jane Doe")
    path.write_text(
        path.read_text() + "mcp: { servers: { b: { url: 'http://127.0.0.1:1/mcp' } } }\n"
    )
    config = load_config(path, {})
    made = Policies(config.deny_files, hash_key=b"k")
    first, second = made.of(config.redaction), made.of(server_redaction(config, "b"))
    assert first.everybody.extra[0]._roots[0] is second.everybody.extra[0]._roots[0]  # type: ignore[union-attr]
