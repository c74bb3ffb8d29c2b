"""Does a record read like an explanation?"""

import pytest

from tidegate.policy import Principal
from tidegate.records import Plain, Trail, as_json, as_text
from tidegate.records.chain import Entry, Head
from tidegate.records.entries import canonical
from tidegate.records.reading import FoundEntry, FoundOpen, Record

ID = "4f7c0b6e2d6b4a0f9c2f1f0a5f3f9d11"
ACME = Principal("acme", "acme", ("tenant", "viewer"), "9f86d081")
AT_MS = 1_796_040_201_123


def trail() -> Trail:
    made = Trail.begin("chat", ID, ACME, "3fa41c22d0aa", headers=[(b"x-request-id", b"mine-1")])
    made.step("route", "match", "default")
    made.step("limits", "reserved", "tokens-per-minute", tokens=9000)
    made.counts("redact_request", "detect", {"email": 2, "ssn": 1})
    made.step("authorize", "deny", "rules[1]", tool="refund", operands={"region": Plain("eu")})
    made.step("attempt", "timeout", provider="primary", text="dropped")
    return made


def ended() -> dict[str, object]:
    made = trail()
    made.began_s = 1.0
    made.finish("ok", 200)
    return made.snapshot(now_s=1.8125).body(b"k")


def entry(kind: str, body: dict[str, object], *, seq: int = 1, intact: bool = True) -> FoundEntry:
    made = Entry("52ab" * 4, "7c1e" * 4, seq, kind, ID, AT_MS + seq, canonical(body), Head().hash)
    return FoundEntry(made, intact)


def test_a_request_that_ended_is_told_step_by_step() -> None:
    found = entry("end", ended())
    digest = found.entry.digest[:16]
    assert (
        as_text(Record(ID, (found,), None))
        == f"""\
request    4f7c0b6e2d6b4a0f9c2f1f0a5f3f9d11
outcome    chat, ok, HTTP 200, 812.5 ms
principal  acme of tenant acme, roles tenant, viewer, key 9f86d081
revision   3fa41c22d0aa
client id  mine-1
2026-11-30 12:03:21.124 UTC  ended

   1  identity        ok
   2  route           match     default
   3  limits          reserved  tokens-per-minute  tokens 9000
   4  redact_request  detect                       email x2, ssn x1
   5  authorize       deny      rules[1]           tool refund, region = eu
   6  attempt         timeout                      provider primary, (1 not recorded)

end        entry 1 of chain 7c1e7c1e7c1e7c1e, hash {digest}, follows its predecessor
"""
    )


def test_an_intent_and_its_end_are_told_as_one() -> None:
    intent = entry("intent", trail().snapshot().body(b"k"))
    text = as_text(Record(ID, (intent, entry("end", ended(), seq=2)), None))
    assert text.count("identity") == 1
    assert "12:03:21.124 UTC  intent committed, before anything was passed on\n" in text
    assert "12:03:21.125 UTC  ended\n" in text
    assert "\nintent     entry 1 of " in text
    assert "\nend        entry 2 of " in text


def lost(state: str) -> FoundEntry:
    body: dict[str, object] = {
        "known": trail().snapshot().body(b"k"),
        "lost_boot": "dead",
        "last_state": state,
        "last_ms": AT_MS - 1000,
    }
    return entry("lost", body)


def test_a_lost_request_says_that_what_followed_is_not_known() -> None:
    text = as_text(Record(ID, (lost("begun"),), None))
    assert "outcome    chat, lost\n           The gateway's process ended before" in text
    assert "12:03:20.123 UTC  begun\n2026-11-30 12:03:21.124 UTC  found lost\n" in text
    assert "   2  route " in text
    assert " begun\n" not in as_text(Record(ID, (lost("intent"),), None))


@pytest.mark.parametrize(("running", "word"), [(True, "running"), (False, "cut off")])
def test_a_request_without_an_end_says_whether_one_can_still_come(
    running: object, word: str
) -> None:
    still_open = FoundOpen(AT_MS, "begun", trail().snapshot().body(b"k"), running is True)
    record = Record(ID, (), still_open)
    assert f"outcome    chat, {word}\n" in as_text(record)
    assert "12:03:21.123 UTC  begun\n" in as_text(record)
    assert as_json(record)["state"] == word


def test_an_entry_that_was_changed_says_so_loudly() -> None:
    record = Record(ID, (entry("end", ended(), intact=False),), None)
    assert "WAS CHANGED OR DOES NOT FOLLOW" in as_text(record)
    assert '"intact":false' in canonical(as_json(record))


def test_a_request_that_was_cut_before_any_answer_shows_no_status() -> None:
    made = trail()
    made.finish("cancelled", 0)
    text = as_text(Record(ID, (entry("end", made.snapshot().body(b"k")),), None))
    assert "outcome    chat, cancelled\n" in text


def test_the_reason_stands_under_the_outcome_in_words() -> None:
    made = trail()
    made.step("limits", "deny", limit="tpm", cap=10, requested=11)
    made.finish("gateway.request_exceeds_limit", 413)
    record = Record(ID, (entry("end", made.snapshot().body(b"k")),), None)
    sentence = (
        "It asks for 11 of limit tpm, which never allows more than 10: waiting does not help."
    )
    assert f"request_exceeds_limit, HTTP 413\n           {sentence}\n" in as_text(record)
    assert as_json(record)["why"] == sentence


def test_names_cannot_send_control_codes_to_a_terminal() -> None:
    body = {**ended(), "principal": "a\x1b]0;x\x07\u202eb\n", "roles": []}
    text = as_text(Record(ID, (entry("end", body),), None))
    assert "a\\u001b]0;x\\u0007\\u202eb\\u000a of tenant acme, roles none" in text
    assert all(c.isprintable() or c == "\n" for c in text)


def test_json_holds_every_entry_as_it_was_written() -> None:
    intent, end = entry("intent", trail().snapshot().body(b"k")), entry("end", ended(), seq=2)
    still_open = FoundOpen(AT_MS, "intent", {"steps": []}, running=True)
    assert as_json(Record(ID, (intent, end), still_open)) == {
        "request_id": ID,
        "state": "ended",
        "why": "",
        "entries": [
            {
                "kind": found.entry.kind,
                "at": f"2026-11-30 12:03:21.{123 + found.entry.seq} UTC",
                "node": "52ab" * 4,
                "boot": "7c1e" * 4,
                "seq": found.entry.seq,
                "prev_hash": "0" * 64,
                "hash": found.entry.digest,
                "intact": True,
                "body": found.body,
            }
            for found in (intent, end)
        ],
        "open": {
            "at": "2026-11-30 12:03:21.123 UTC",
            "state": "intent",
            "running": True,
            "body": {"steps": []},
        },
    }
