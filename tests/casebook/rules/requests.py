"""Which sentences compare the chat request at the upstream with what the client sent?

Content parts, URLs, renamed fields, redacted messages. Does not live here: how many requests
came and with which credential (upstream), answers (stream, content).
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.upstream import PERSONAL, UPSTREAM, last_call
from tests.casebook.rules.words import NUMBER, items, literal, number, quoted
from tests.casebook.seen import Exchange, Mismatch, check, equal, same, short, strings

Match = re.Match[str]
_WEB = ("http", "llm", "mcp")


def _parts(value: Any) -> list[dict[str, Any]]:
    """The content parts of every message of a chat request."""
    found = []
    for message in value.get("messages", []) if isinstance(value, dict) else []:
        content = message.get("content") if isinstance(message, dict) else None
        found += (
            [part for part in content or [] if isinstance(part, dict)]
            if isinstance(content, list)
            else []
        )
    return found


def _part_order(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = _parts(exchange.sent.json), _parts(last_call(exchange).json)
    equal([part.get("type") for part in got], [part.get("type") for part in sent], "parts")
    check(len(got) == number(m["count"] or str(len(got))), f"{len(got)} parts")


def _part_texts(exchange: Exchange, m: Match, view: View) -> None:
    got = [part["text"] for part in _parts(last_call(exchange).json) if part.get("type") == "text"]
    equal(got, quoted(m["texts"]), "texts")


def _parts_unchanged(exchange: Exchange, m: Match, view: View) -> None:
    def others(value: Any) -> list[dict[str, Any]]:
        return [part for part in _parts(value) if part.get("type") != "text"]

    sent, got = others(exchange.sent.json), others(last_call(exchange).json)
    check(sent, "no such part was sent")
    equal(got, sent, "parts that are no text")


def _leaves(
    value: object, path: tuple[object, ...] = ()
) -> Iterator[tuple[tuple[object, ...], object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
        if not value:
            yield path, value
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _leaves(item, (*path, at))
        if not value:
            yield path, value
    else:
        yield path, value


def _urls(exchange: Exchange, m: Match, view: View) -> None:
    urls = [text for text in strings(exchange.sent.json) if re.match(r"(data|https?):", text)]
    check(urls, "no URL was sent")
    got = set(strings(last_call(exchange).json))
    for url in urls:
        check(url in got, f"the upstream did not get {short(url)}")


def _body_equal(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = dict(_leaves(exchange.sent.json)), dict(_leaves(last_call(exchange).json))
    missing = [short(".".join(map(str, path))) for path in sent if path not in got]
    added = [short(".".join(map(str, path))) for path in got if path not in sent]
    check(not missing and not added, f"missing {missing}, added {added}")
    for path, value in sent.items():
        masked = isinstance(got[path], str) and "[REDACTED_" in str(got[path])
        if not same(got[path], value) and not masked:
            raise Mismatch(f"{'.'.join(map(str, path))}: {short(got[path])} for {short(value)}")


def _not_renamed(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = _pairs(exchange.sent.json), _pairs(last_call(exchange).json)
    old, new = m["old"], m["new"]
    check(any(old in pair for pair in sent), f"{old} was not sent")
    check(sum(old in p for p in got) == sum(old in p for p in sent), f"{old} did not arrive")
    check(sum(new in p for p in got) == sum(new in p for p in sent), f"{new} was made up")


def _pairs(value: object) -> list[tuple[object, object]]:
    """(key, value) of every member of every object; values that are containers as None."""
    found: list[tuple[object, object]] = []
    if isinstance(value, dict):
        for key, item in value.items():
            found.append((key, item if isinstance(item, str | int | float) else None))
            found += _pairs(item)
    elif isinstance(value, list):
        for item in value:
            found += _pairs(item)
    return found


def _stays_null(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = dict(_leaves(exchange.sent.json)), dict(_leaves(last_call(exchange).json))
    paths = [path for path, value in sent.items() if value is None and path[-1] == m["field"]]
    check(paths, f"no null {m['field']} was sent")
    for path in paths:
        check(path in got and got[path] is None, f"{m['field']} became {short(got.get(path))}")


def _unknown_kept(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = exchange.sent.json, last_call(exchange).json
    check(isinstance(sent, dict) and isinstance(got, dict), "no JSON object")
    for key, value in sent.items():
        if key not in ("messages", "stream", "stream_options"):
            masked = "[REDACTED_" in json.dumps(got.get(key))
            fits = key in got and (masked or same(got[key], value))
            check(fits, f"{key}: {short(got.get(key))}")


def _field_kept(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = dict(_leaves(exchange.sent.json)), dict(_leaves(last_call(exchange).json))
    paths = [path for path in sent if m["field"] in path]
    check(paths, f"no {m['field']} was sent")
    for path in paths:
        check(path in got and same(got[path], sent[path]), f"{m['field']}: {short(got.get(path))}")


def _plain_json(exchange: Exchange, m: Match, view: View) -> None:
    _unknown_kept(exchange, m, view)


def _same_value(exchange: Exchange, m: Match, view: View) -> None:
    sent = exchange.sent.json.get(m["field"]) if isinstance(exchange.sent.json, dict) else None
    got = last_call(exchange).json
    equal(got.get(m["field"]) if isinstance(got, dict) else None, sent, m["field"])


def _member(exchange: Exchange, m: Match, view: View) -> None:
    value = last_call(exchange).json
    for key in m["path"].split("."):
        value = value[int(key)] if key.isdigit() else value.get(key)
        check(value is not None, f"no {m['path']}: {short(exchange.calls[-1].body)}")
    if m["value"]:
        equal(value, literal(m["value"]), m["path"])


def _fields_arrive(exchange: Exchange, m: Match, view: View) -> None:
    sent, got = exchange.sent.json, last_call(exchange).json
    for name in items(m["names"]):
        check(name in sent, f"no {name} was sent")
        equal(got.get(name), sent[name], name)


def _role_redacted(exchange: Exchange, m: Match, view: View) -> None:
    got = [one for one in last_call(exchange).json["messages"] if one.get("role") == m["role"]]
    check(got, f"no {m['role']} message went upstream")
    text = json.dumps(got, ensure_ascii=False)
    check("[REDACTED_" in text, f"not redacted: {short(text)}")
    check(not PERSONAL.findall(text), f"personal data in {short(text)}")


RULES = (
    Rule(
        "part order",
        rf"(?:{UPSTREAM}: )?(?:the )?same (?P<count>{NUMBER})? ?parts in the same order",
        each(_part_order),
        ("llm",),
    ),
    Rule("part texts", r'(?:the )?texts? (?:are|is) (?P<texts>".+")', each(_part_texts), ("llm",)),
    Rule(
        "parts unchanged",
        r"(?:the )?(?:[\w-]+(?:,? and |, ))*[\w-]+ parts? (?:are |is )?(?:un(?:changed"
        r"|touched)|as sent)",
        each(_parts_unchanged),
        ("llm",),
    ),
    Rule(
        "urls",
        rf"{UPSTREAM} (?:gets|sees) the URLs? (?:byte for byte|unchanged|as sent)",
        each(_urls),
        ("llm",),
    ),
    Rule(
        "body equal",
        rf"{UPSTREAM} (?:body|request) is (?:JSON-)?equal(?: \(except what redaction "
        rf"changes\))?|{UPSTREAM} (?:gets|sees) the (?:body|request) (?:un(?:changed"
        r"|touched)|as sent|byte for byte)",
        each(_body_equal),
        ("llm",),
    ),
    Rule(
        "upstream member",
        rf"{UPSTREAM} (?:request|body) has (?!no )(?P<path>[a-z_]+(?:\.[a-z_0-9]+)*)"
        r"(?: (?:=|is|:)? ?(?P<value>\S+))?",
        each(_member),
        _WEB,
    ),
    Rule(
        "fields arrive",
        rf"(?P<names>[a-z_]+(?:(?:, | and |, and )[a-z_]+)*) (?:arrives?|reach(?:es)?)"
        rf"(?: {UPSTREAM})? ?(?:un(?:changed|touched)|as sent)(?: (?:at )?{UPSTREAM})?",
        each(_fields_arrive),
        ("llm",),
    ),
    Rule(
        "role redacted",
        r"(?:the )?(?P<role>system|developer|user|assistant|tool) (?:message|result|text|content)s?"
        r" (?:is |are )?(?:redacted|masked)",
        each(_role_redacted),
        ("llm",),
    ),
    Rule(
        "not renamed",
        r"(?:the )?(?:role )?(?P<old>\w+) (?:is |was )?not (?:renamed|turned|changed"
        r"|converted|mapped) (?:to|into) (?P<new>\w+)",
        each(_not_renamed),
        ("llm",),
    ),
    Rule("null stays", r"null (?P<field>\w+) stays null", each(_stays_null), ("llm",)),
    Rule(
        "unknown kept",
        r"(?:the )?unknown fields?(?: is| are)? (?:kept|forwarded|passed on|untouched)",
        each(_unknown_kept),
        ("llm",),
    ),
    Rule(
        "field kept",
        r"(?:the )?(?:field )?(?P<field>[a-z_]+)(?: is| are)? (?:kept|forwarded"
        r"|passed on)(?: unchanged)?",
        each(_field_kept),
        ("llm",),
    ),
    Rule(
        "plain JSON", r"(?:are |is )?forwarded as plain (?:unknown )?JSON", each(_plain_json), _WEB
    ),
    Rule(
        "same value",
        rf"{UPSTREAM} (?:gets|sees) (?P<field>[a-z_]+) (?:un(?:changed|touched)|as sent)",
        each(_same_value),
        ("llm",),
    ),
)
