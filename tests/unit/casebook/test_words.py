"""What do `write`, `generate`, `upstream`, `tool_under_test`, `config` and behaviors stand for?"""

import gzip
import json
import zlib

import brotli
import pytest

from tests.casebook import answers, backend, behaviors, configs, generate, toolkit, writes
from tests.casebook.bodies import encoded
from tests.casebook.cases import KNOWN_CUSTOMER, BadFile, load, replaced
from tests.casebook.events import Chat, decode

SSE = b"data: {1}\n\ndata: {2}\n\n"


@pytest.mark.parametrize(
    ("words", "pieces"),
    [
        ("whole", [SSE]),
        ("1 byte per write", [SSE[at : at + 1] for at in range(len(SSE))]),
        ("12 bytes per write", [SSE[:12], SSE[12:]]),
        ("64 KiB per write", [SSE]),
        ("one event per 100 ms", [SSE[:11], SSE[11:]]),
        (r"cut after every \n", [b"data: {1}\n", b"\n", b"data: {2}\n", b"\n"]),
        ('cut before every "{"', [b"data: ", b"{1}\n\ndata: ", b"{2}\n\n"]),
        ("one line per write", [b"data: {1}\n", b"\n", b"data: {2}\n", b"\n"]),
    ],
)
def test_write_cuts_a_stream(words: str, pieces: list[bytes]) -> None:
    assert [write.data for write in writes.plan(words, SSE)] == pieces


def test_write_pauses_only_between_writes() -> None:
    assert [write.pause_s for write in writes.plan("one event per 100 ms", SSE)] == [0.0, 0.1]
    slow = writes.plan("whole", SSE, slow=True)
    assert [write.pause_s for write in slow] == [0.0, writes.SLOW_S]
    assert b"".join(write.data for write in slow) == SSE


def test_words_that_describe_no_writing_are_refused() -> None:
    with pytest.raises(writes.CannotWrite):
        writes.plan("as it likes", SSE)


def test_an_answer_is_compressed_as_its_headers_say() -> None:
    for coding, decompress in (
        ("gzip", gzip.decompress),
        ("br", brotli.decompress),
        ("deflate", zlib.decompress),
    ):
        made = answers.canned({"headers": {"Content-Encoding": coding}, "json": {"a": "é"}})
        assert json.loads(decompress(b"".join(write.data for write in made.writes))) == {"a": "é"}
        assert json.loads(made.plain) == {"a": "é"}


def test_answers_in_words() -> None:
    said = answers.canned({"json": 'gzip of a completion with content "mail jane"'})
    assert json.loads(said.plain)["choices"][0]["message"]["content"] == "mail jane"
    large = answers.canned(
        {
            "sse": "one chunk event whose delta carries images[0].url = data:a, + 10 characters,"
            ' then text "x"'
        }
    )
    chat = Chat.of_events(decode([(0.0, large.plain)]))
    assert len(chat.chunks[0][1]["choices"][0]["delta"]["images"][0]["url"]) == 17
    assert (chat.text(), chat.done) == ("x", 1)
    assert answers.canned({"sse": ": hi\n\ndata: [DONE]\n\n"}).plain == b": hi\n\ndata: [DONE]\n\n"
    with pytest.raises(answers.CannotAnswer):
        answers.canned({"json": "something else"})


def test_generated_lines() -> None:
    made = generate.lines(
        'trigger_refund with reason = "a"*1000 as id 1; then ping id 2; also a toolkit tool that'
        " returns 30 characters as id 3"
    )
    refund, ping, long = map(json.loads, made.lines)
    assert refund["params"]["arguments"]["reason"] == "a" * 1000
    assert (ping["method"], ping["id"], long["id"]) == ("ping", 2, 3)
    assert made.tools == {long["params"]["name"]: 'return "r" * 30'}
    nested = generate.lines('tools/call id 1 with arguments {"x": [[[...40...]]]}, then ping id 2')
    assert nested.lines[0].count("[") == nested.lines[0].count("]") == 40
    with pytest.raises(generate.CannotGenerate):
        generate.lines("something else")


def test_generated_streams() -> None:
    made = generate.deltas(
        'for each i send text[:i] and text[i:]; one delta per character; text = "abc"'
    )
    assert [one.texts for one in made] == [["a", "bc"], ["ab", "c"], ["a", "b", "c"]]
    secrets = generate.deltas(
        'in 10-character deltas: (a) "sk-proj-" + 20 of [A-Z]; (b) a JWT of 300 characters; (c) an'
        " e-mail with a 64-character local part and a 180-character domain"
    )
    lengths = {one.label: len(one.secret) for one in secrets}
    assert lengths["a"] == 28
    assert lengths["b"] == 300
    local, _, domain = secrets[2].secret.partition("@")
    assert (len(local), len(domain)) == (64, 180)
    assert all(one.secret in "".join(one.texts) for one in secrets)


def test_a_tool_under_test_becomes_statements() -> None:
    body = toolkit.body(
        'a tool that does: print("a; b"); ctypes libc printf+fflush;'
        " logging.basicConfig(stream=sys.stdout)"
    )
    compile(toolkit.module({"noisy": body}), "module", "exec")
    assert 'print("a; b")' in body
    assert "fflush" in body
    assert ".warning(" in body
    reads = toolkit.body("tool that runs a child which reads its stdin to the end (cat)")
    compile(toolkit.module({"child": reads}), "module", "exec")
    with pytest.raises(toolkit.CannotBuild):
        toolkit.body("a tool that does: dance")


def test_limits_in_words() -> None:
    assert configs.limit("10000 tokens / 60 s") == {
        "name": "case-limit",
        "per": "tenant",
        "tokens": 10000,
        "window_s": 60.0,
    }
    with pytest.raises(configs.CannotConfigure):
        configs.wanted({"weather": "fine"})
    inside = configs.wanted({"tail_comment": True, "llm_body_bytes": 9, "attempt_deadline_s": 3})
    assert inside.config == {
        "redaction": {"tail_comment": True},
        "server": {"caps": {"llm_body_bytes": 9}},
    }
    assert inside.route == {"deadlines": {"first_token_s": 3}}
    only = configs.wanted({"detectors": ["email"]}).config["redaction"]["detectors"]
    assert [name for name, one in only.items() if one["action"] == "mask"] == ["email"]
    assert configs.wanted({"hide_admin_tools": True}).environment == {"HIDE_ADMIN_TOOLS": "1"}


@pytest.mark.parametrize(
    "words",
    [
        "ok",
        "hangs",
        "accepts TCP and says nothing",
        "429 with Retry-After 30",
        "400 context_length_exceeded",
        "302 Location: http://x.example/v1",
        '200 with {"error":{"message":"x"}}',
        "200 text/html",
        '200 with "choices": []',
        "alternates 500 and 429",
        "needs 0.5 s",
        "sends 3 deltas, then closes the socket (no finish_reason, no [DONE])",
        "comments only for 1 s, then an error event",
    ],
)
def test_behaviors_in_words(words: str) -> None:
    assert callable(behaviors.behavior(words))


def test_words_that_describe_no_behavior_are_refused() -> None:
    with pytest.raises(behaviors.CannotBehave):
        behaviors.behavior("sings")
    with pytest.raises(backend.CannotBehave):
        backend.timeline("sings")


def test_a_timeline_is_sorted_by_time() -> None:
    words = "SSE: result at 1.1 s, progress notification with token p-1 at 0.1 s and 600 ms"
    assert [(at, token) for at, _, token in backend.timeline(words)] == [
        (0.1, "p-1"),
        (0.6, "p-1"),
        (1.1, ""),
    ]


def test_a_variant_changes_the_bytes_of_a_body() -> None:
    assert encoded("{}", {"body_encoding": "utf-16"})[0] == "{}".encode("utf-16")
    assert encoded("{}", {"body_prefix": "\ufeff", "Accept": "*/*"}) == (
        b"\xef\xbb\xbf{}",
        {"Accept": "*/*"},
    )
    assert gzip.decompress(encoded("{}", {"Content-Encoding": "gzip"})[0]) == b"{}"


def test_constant_words_are_replaced_everywhere() -> None:
    assert replaced({"a": ["$REPEAT(ab,3)", "$KNOWN"]}) == {"a": ["ababab", KNOWN_CUSTOMER]}


def test_a_file_that_is_not_in_the_format_says_where(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "cases.jsonl"
    file.write_text('{"id": "A", "input": {"kind": "http"}, "expect": {}}\n{"id": "B"}\n')
    with pytest.raises(BadFile, match=r"cases\.jsonl:2: no input, expect"):
        load(file)


def test_the_runner_reads_events_by_itself() -> None:
    chunks = [
        (1.0, b"\xef\xbb\xbf: hi\rdata:a\r"),
        (2.0, b"\ndata: b\r\n\r\nid: 1\n\nda"),
        (3.0, b"ta"),
    ]
    first, second, third = decode(chunks)
    assert (first.data, first.comments, first.at_s) == ("a\nb", ("hi",), 2.0)
    assert (second.data, second.fields, second.whole) == (None, (("id", "1"),), True)
    assert (third.data, third.whole, third.at_s) == ("", False, 3.0)
