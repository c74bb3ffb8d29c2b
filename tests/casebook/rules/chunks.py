"""Which sentences speak about the chunks of an answer: their number, order and single fields?

Does not live here: named texts (content), joined texts (stream), tool calls (deltas).
"""

import re
from typing import Any

from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.keys import visible
from tests.casebook.rules.upstream import PERSONAL
from tests.casebook.rules.words import NUMBER, items, number
from tests.casebook.seen import Exchange, check, equal, parsed, same, short

Match = re.Match[str]
_LLM = ("llm",)


def _nothing_redacted(exchange: Exchange, m: Match, view: View) -> None:
    check("[REDACTED" not in exchange.text, f"a placeholder in {short(exchange.text)}")


def _nothing_lost(exchange: Exchange, m: Match, view: View) -> None:
    said, got = exchange.canned_chat, exchange.chat
    check(said.chunks, "the upstream sent no chunks")
    for (index, name), text in said.texts.items():
        equal(got.texts.get((index, name), ""), text, f"{name} of choice {index}")


def _event_count(exchange: Exchange, m: Match, view: View) -> None:
    got = len([event for event in exchange.events if event.data])
    check(got == number(m["count"]), f"{got} events")


def _usage_arrives(exchange: Exchange, m: Match, view: View) -> None:
    said = [chunk["usage"] for _, chunk in exchange.canned_chat.chunks if chunk.get("usage")]
    got = [chunk["usage"] for _, chunk in exchange.chat.chunks if chunk.get("usage")]
    check(said, "the upstream sent no usage")
    equal(got, said, "usage")


def _field_everywhere(exchange: Exchange, m: Match, view: View) -> None:
    """Structural fields of every chunk as the upstream sent them, in order."""
    for name in items(m["names"]):
        said = [chunk[name] for _, chunk in exchange.canned_chat.chunks if name in chunk]
        got = [chunk[name] for _, chunk in exchange.chat.chunks if name in chunk]
        check(said, f"the upstream sent no {name}")
        equal(_runs(got), _runs(said), name)


def _runs(values: list[Any]) -> list[Any]:
    """Without repetitions in a row: one event may have been added."""
    return [value for at, value in enumerate(values) if not at or not same(value, values[at - 1])]


def _ends_with_error(exchange: Exchange, m: Match, view: View) -> None:
    data = [event for event in exchange.events if event.data]
    check(data, f"no events: {short(exchange.text)}")
    last = data[-1].json
    check(isinstance(last, dict) and "error" in last, f"last event {short(data[-1].data)}")


def _arguments_json(exchange: Exchange, m: Match, view: View) -> None:
    texts = list(exchange.chat.arguments().values())
    check(texts, "no tool calls")
    for text in texts:
        check(parsed(text) is not None, f"not JSON: {short(text)}")


def _role(exchange: Exchange, m: Match, view: View) -> None:
    roles = [delta["role"] for _, _, delta, _ in exchange.chat.deltas() if "role" in delta]
    equal(roles[:1], [m["role"]], "role")


def _last_done(exchange: Exchange, m: Match, view: View) -> None:
    data = [event.data for event in exchange.events if event.data is not None]
    check(data.count("[DONE]") == 1 and data[-1] == "[DONE]", f"ends with {short(data[-2:])}")


def _finish_arrives(exchange: Exchange, m: Match, view: View) -> None:
    equal(exchange.chat.finishes(), [m["reason"]], "finish reasons")


def _usage_last(exchange: Exchange, m: Match, view: View) -> None:
    chunks = [chunk for _, chunk in exchange.chat.chunks]
    check(chunks and chunks[-1].get("usage"), f"last chunk {short(chunks[-1:])}")


def _marks(exchange: Exchange, m: Match, view: View) -> None:
    found = "".join(exchange.chat.texts.values()).count(m["mark"])
    check(found == number(m["count"] or "one"), f"{found} of {m['mark']}")


def _no_part(exchange: Exchange, m: Match, view: View) -> None:
    """No run of six characters of anything personal that the upstream said."""
    said = " ".join(exchange.canned_chat.texts.values())
    secrets = [exchange.secret] if exchange.secret else PERSONAL.findall(said)
    check(secrets, "the upstream said nothing personal")
    got = " ".join(visible(exchange))
    for secret in secrets:
        plain = secret.removeprefix("sk-proj-")
        runs = [plain[at : at + 6] for at in range(max(1, len(plain) - 5))]
        leaked = [run for run in runs if run in got and not run.isspace()]
        check(not leaked, f"{leaked[:1]} of {short(secret)} leaked")


def _indexes(exchange: Exchange, m: Match, view: View) -> None:
    said = [index for _, index, _, choice in exchange.canned_chat.deltas()]
    got = [index for _, index, _, choice in exchange.chat.deltas()]
    equal(sorted(set(got)), sorted(set(said)), "choice indexes")


def _each_choice(exchange: Exchange, m: Match, view: View) -> None:
    for (index, name), text in exchange.chat.texts.items():
        check("[REDACTED_" in text, f"{name} of choice {index}: {short(text)}")
    check(exchange.chat.texts, "no text")


def _no_text_after(exchange: Exchange, m: Match, view: View) -> None:
    data = [event for event in exchange.events if event.data]
    at = next((n for n, e in enumerate(data) if e.json and "error" in e.json), None)
    check(at is not None, "no error event")
    check(not data[(at or 0) + 1 :], f"after the error: {short(data[-1].data)}")


RULES = (
    Rule(
        "nothing redacted",
        r"no placeholders?|nothing (?:is |was )?(?:redacted|masked)|not (?:redacted|masked)"
        r"(?: twice| again)?",
        each(_nothing_redacted),
        _LLM,
    ),
    Rule(
        "nothing lost",
        r"(?:no (?:event|text|delta|chunk|character)s?|nothing|(?:the )?first event)"
        r" (?:is |was |are |is not )?(?:lost|dropped|missing|doubled|swallowed)"
        r"(?: or (?:doubled|repeated))?",
        each(_nothing_lost),
        _LLM,
    ),
    Rule(
        "event count",
        rf"(?:exactly )?(?P<count>{NUMBER}) events?(?: reach(?:es)? the client|, not \w+)?",
        each(_event_count),
        _LLM,
    ),
    Rule(
        "usage arrives",
        r"(?:the )?usage(?: chunk)? (?:arrives|reaches the client|passes|is kept)(?: unchanged)?",
        each(_usage_arrives),
        _LLM,
    ),
    Rule(
        "structural fields",
        r"(?P<names>(?:id|model|created|object|system_fingerprint)(?:(?:, | and |, and )"
        r"(?:id|model|created|object|system_fingerprint))*) (?:are |is )?"
        r"(?:un(?:changed|touched)|kept|as sent)",
        each(_field_everywhere),
        _LLM,
    ),
    Rule(
        "ends with error",
        r"(?:the )?stream ends with (?:an|one) error(?: event)?",
        each(_ends_with_error),
        _LLM,
    ),
    Rule(
        "arguments are JSON",
        r"(?:joined )?arguments (?:parse as|are|stay) (?:valid )?JSON",
        each(_arguments_json),
        _LLM,
    ),
    Rule(
        "done last",
        r"\[DONE\] is (?:the )?last(?: event)?|no second \[DONE\]|\[DONE\] once",
        each(_last_done),
        _LLM,
    ),
    Rule(
        "finish arrives",
        r'finish_reason "?(?P<reason>[a-z_]+)"? arrives(?: (?:exactly )?once)?',
        each(_finish_arrives),
        _LLM,
    ),
    Rule(
        "usage last",
        r"(?:the )?usage(?: chunk)? is (?:the )?last(?: (?:chunk|event))?(?: before \[DONE\])?",
        each(_usage_last),
        _LLM,
    ),
    Rule(
        "marks",
        rf"(?:exactly )?(?P<count>{NUMBER}) (?P<mark>\[REDACTED_[A-Z]+\])",
        each(_marks),
        _LLM,
    ),
    Rule(
        "no part",
        r"no (?:part|character|piece|half)s? of (?:the|it|them|any)(?: [\w-]+)? "
        r"?(?:leaks?|reach(?:es)?"
        r" the client|gets out|is seen)",
        each(_no_part),
        _LLM,
    ),
    Rule("indexes", r"(?:\w+ )?choices keep their index(?:es)?", each(_indexes), _LLM),
    Rule(
        "each choice",
        r"(?:an? )?redacted text in each choice|each choice is redacted",
        each(_each_choice),
        _LLM,
    ),
    Rule(
        "no text after",
        r"(?:no|nothing)(?: text| chunk)? after (?:it|the error(?: event)?)",
        each(_no_text_after),
        _LLM,
    ),
    Rule("role", r'(?:the )?role(?: is| arrives as)? "?(?P<role>\w+)"?', each(_role), _LLM),
)
