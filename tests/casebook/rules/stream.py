"""Which sentences speak about the texts and events of a streamed answer?

Joined texts, placeholders, order of chunks, `[DONE]`, events as such, what the SDK made of it.
Does not live here: when things arrive (timing), status and headers (http).
"""

import re
from typing import Any

from tests.casebook.rules.grammar import Rule, View, each
from tests.casebook.rules.words import NUMBER, number
from tests.casebook.seen import Exchange, check, equal, short

Match = re.Match[str]
_TEXT = r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[\w\[\]./-]+))'
_JOINED = r"(?:the )?(?:joined |whole |client's |redacted |final )*text"


def joined(exchange: Exchange, index: int = 0) -> str:
    """What a client collected: by the SDK if it read the answer, and the raw view must agree."""
    raw = exchange.chat.text(index)
    if index == 0 and exchange.sdk_text is not None:
        equal(exchange.sdk_text, raw, "text of the SDK")
    return raw


def _wanted(m: Match) -> str:
    return m["bare"] if m["bare"] is not None else str(m["quoted"])


def _text_is(exchange: Exchange, m: Match, view: View) -> None:
    equal(joined(exchange), _wanted(m), "text")


def _text_arrives(exchange: Exchange, m: Match, view: View) -> None:
    check(_wanted(m) in joined(exchange), f"text {short(joined(exchange))}")


def _text_original(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.canned_chat.texts, "the upstream said no text")
    equal(_said(exchange.chat.texts), _said(exchange.canned_chat.texts), "texts")


def _said(texts: dict[tuple[int, str], str]) -> dict[str, str]:
    return {f"{index}/{name}": text for (index, name), text in texts.items() if text}


def _same_text(view: View, m: Match) -> None:
    texts = {joined(exchange) for exchange in view.exchanges}
    check(len(texts) == 1, f"different texts: {short(sorted(texts))}")
    wanted = view.seen.case.expect.get("stream_text")
    if wanted is not None:
        equal(texts.pop(), wanted, "text")


def _choice(exchange: Exchange, m: Match, view: View) -> None:
    index = int(m["index"])
    equal(joined(exchange, index), m["text"], f"choice {index}")
    if m["finish"]:
        equal(exchange.chat.finishes(index), [m["finish"]], f"finish of choice {index}")


def _no_character(exchange: Exchange, m: Match, view: View) -> None:
    character = chr(int(m["hex"], 16))
    where = exchange.text.find(character)
    check(where < 0, f"U+{m['hex']} in {short(exchange.text[max(0, where - 20) :])}")
    found = [text for text in exchange.chat.texts.values() if character in text]
    check(not found, f"U+{m['hex']} in {short(found)}")


def _not_cut(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.whole, "the answer was cut")
    errors = exchange.chat.errors
    check(exchange.chat.done == 1 and not errors, f"{exchange.chat.done} [DONE], {short(errors)}")


def _done(exchange: Exchange, m: Match, view: View) -> None:
    wanted = number(m["count"] or "one")
    check(exchange.chat.done == wanted, f"{exchange.chat.done} [DONE]")
    if wanted:
        data = [event.data for event in exchange.events if event.data is not None]
        check(data[-1] == "[DONE]", f"after [DONE]: {short(data[-1])}")


def _no_event_data(exchange: Exchange, m: Match, view: View) -> None:
    bad = [event.data for event in exchange.events if (event.data or "").startswith(m["start"])]
    check(not bad, f"an event with the data {short(bad)}")


def _no_empty_event(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.events, f"no events: status {exchange.status} {short(exchange.text)}")
    for event in exchange.events:
        lone = event.data is None and not event.comments
        check(not lone and event.data != "", f"an event without data: {short(event.fields)}")


def _safe_comments(exchange: Exchange, m: Match, view: View) -> None:
    _no_empty_event(exchange, m, view)
    ids = False
    for event in exchange.events:
        names = [name for name, _ in event.fields]
        lone_comment = event.data is None and bool(event.comments)
        check(not (lone_comment and ids), f"after an id, a comment alone: {event.comments}")
        ids = ids or "id" in names or "retry" in names


def _ids_dropped(exchange: Exchange, m: Match, view: View) -> None:
    names = {name for event in exchange.events for name, _ in event.fields}
    check(not names & {"id", "retry"}, f"fields {sorted(names)}")


def _collects(exchange: Exchange, m: Match, view: View) -> None:
    _no_exception(exchange, m, view)
    equal(exchange.sdk_text, _wanted(m), "text of the SDK")


def _no_exception(exchange: Exchange, m: Match, view: View) -> None:
    check(exchange.by_sdk, "the SDK did not read this answer")
    error = exchange.client_error
    check(error is None, f"the SDK raised {type(error).__name__}: {short(str(error))}")


def _raises(exchange: Exchange, m: Match, view: View) -> None:
    error = exchange.client_error
    names = [] if error is None else [kind.__name__ for kind in type(error).__mro__]
    check(m["error"] in names, f"the client raised {type(error).__name__}")


def _error_event(exchange: Exchange, m: Match, view: View) -> None:
    errors = exchange.chat.errors
    check(len(errors) == 1, f"{len(errors)} error events")
    error = errors[0]["error"]
    missing = [key for key in ("code", "message", "request_id") if not error.get(key)]
    check(not missing, f"error event without {missing}: {short(error)}")
    check(str(error["code"]).startswith("gateway."), f"code {error['code']}")
    equal(error["request_id"], exchange.header("x-request-id"), "request_id")


def _text_before(exchange: Exchange, m: Match, view: View) -> None:
    values = [event.json for event in exchange.events]
    at = next((n for n, v in enumerate(values) if isinstance(v, dict) and "error" in v), None)
    check(at is not None, "no error event")
    equal(joined(exchange), _wanted(m), "text before the error")
    later = [v for v in values[at or 0 :] if isinstance(v, dict) and v.get("choices")]
    check(not later, "chunks after the error event")


def _events_in_order(exchange: Exchange, m: Match, view: View) -> None:
    said = [chunk for _, chunk in exchange.canned_chat.chunks]
    got = [chunk for _, chunk in exchange.chat.chunks]
    total = len(said) + exchange.canned_chat.done
    wanted = number(m["count"]) if m["count"] else total
    check(total == wanted, f"the upstream sent {total} events")
    left = _order(got)
    for chunk in _order(said):
        check(chunk in left, f"no event {chunk} in {left}")
        left = left[left.index(chunk) + 1 :]
    check(len(got) <= len(said) + 1, f"{len(got)} chunks for {len(said)}")
    check(exchange.chat.done == exchange.canned_chat.done, f"{exchange.chat.done} [DONE]")


def _order(chunks: list[dict[str, Any]]) -> list[list[str]]:
    """What each chunk is, without texts: held text may leave in an event that was added."""
    found = []
    for chunk in chunks:
        choices = chunk.get("choices") or []
        finish = [choice.get("finish_reason") for choice in choices if choice.get("finish_reason")]
        if not choices or finish or any(choice.get("delta") for choice in choices):
            found.append([*sorted(set(chunk) - {"choices"}), str(len(choices)), *finish])
    return found


def _finish_after(exchange: Exchange, m: Match, view: View) -> None:
    last_text, first_finish, at = -1, None, -1
    for at, (_, _, delta, choice) in enumerate(exchange.chat.deltas()):
        if delta.get("content"):
            last_text = at
        if choice.get("finish_reason") and first_finish is None:
            first_finish = at
    check(first_finish is not None, "no finish_reason")
    check(last_text >= 0 and last_text <= (first_finish or 0), "text after finish_reason")


def _one_finish(exchange: Exchange, m: Match, view: View) -> None:
    index = int(m["index"] or 0)
    got = exchange.chat.finishes(index)
    wanted = [m["reason"]] if m["reason"] else got[:1]
    check(got == wanted and got, f"finish reasons of choice {index}: {got}")


def _no_finish(exchange: Exchange, m: Match, view: View) -> None:
    check(not exchange.chat.finishes(), f"finish reasons {exchange.chat.finishes()}")


def _finish_is(exchange: Exchange, m: Match, view: View) -> None:
    equal(exchange.chat.finishes(), [m["reason"]], "finish reasons")


def _placeholders(exchange: Exchange, m: Match, view: View) -> None:
    found = re.findall(r"\[REDACTED_[A-Z_]+\]", "".join(exchange.chat.texts.values()))
    wanted = number(m["count"])
    named = m["kind"]
    if named:
        found = [mark for mark in found if named.lower() in mark.lower()]
    check(len(found) == wanted, f"placeholders {found}")


def _letters_kept(exchange: Exchange, m: Match, view: View) -> None:
    got, said = joined(exchange), exchange.canned_chat.text()
    letters = m["letters"].split()
    pattern = r".*".join(rf"(?<!\S){re.escape(letter)}(?!\S)" for letter in letters)
    check(re.search(pattern, said, re.DOTALL), "the upstream did not say these letters")
    plain = re.sub(r"\[REDACTED_\w+\]", "#", got)
    check(re.search(pattern, plain, re.DOTALL), f"text {short(got)}")
    check(plain.count(" ") >= len(letters), f"spaces are gone: {short(got)}")


def _all_redacted(exchange: Exchange, m: Match, view: View) -> None:
    found = re.findall(r"\[REDACTED_[A-Z_]+\]", joined(exchange))
    check(
        len(found) == number(m["count"]), f"{len(found)} placeholders in {short(joined(exchange))}"
    )


def _redaction_took_place(exchange: Exchange, m: Match, view: View) -> None:
    found = re.findall(r"\[REDACTED_[A-Z_]+\]", exchange.text)
    check(found, f"no placeholder in {short(exchange.text)}")


def _decodes(exchange: Exchange, m: Match, view: View) -> None:
    readable = exchange.json is not None or exchange.chat.chunks or exchange.chat.errors
    check(exchange.whole and readable, f"unreadable: {short(exchange.body)}")


_REASON = r'"?(?P<reason>stop|length|tool_calls|content_filter|function_call)"?'
_LLM = ("llm",)
RULES = (
    Rule(
        "text original",
        rf"{_JOINED} (?:equals|is|stays|arrives as) (?:the original|unchanged|untouched"
        rf"|as sent)(?: \([^)]*\))?|{_JOINED} unchanged(?: \([^)]*\))?",
        each(_text_original),
        _LLM,
    ),
    Rule(
        "same text",
        r"(?:always |both ways |every time )?(?:the )?same (?:joined |redacted )"
        r"*text(?: (?:both ways|every time|always))?",
        _same_text,
        _LLM,
    ),
    Rule("text arrives", rf"{_JOINED} {_TEXT} arrives", each(_text_arrives), _LLM),
    Rule(
        "text before error",
        rf"{_JOINED} before (?:it|the error(?: event)?) is {_TEXT}",
        each(_text_before),
        _LLM,
    ),
    Rule("text is", rf"{_JOINED}(?: is| equals|:)? {_TEXT}", each(_text_is), _LLM),
    Rule(
        "choice",
        r'choice (?P<index>\d+): "(?P<text>[^"]*)"(?:,? finish(?:_reason)? "?(?P<finish>\w+)"?)?',
        each(_choice),
        _LLM,
    ),
    Rule("no character", r"no U\+(?P<hex>[0-9A-F]{4,6})(?: anywhere)?", each(_no_character), _LLM),
    Rule(
        "not cut",
        r"(?:the )?stream (?:is )?(?:not cut|whole|complete|ends well)",
        each(_not_cut),
        _LLM,
    ),
    Rule(
        "done",
        rf"(?:then |ends with |and )?(?:(?:exactly )?(?P<count>{NUMBER}) )?\[DONE\](?: "
        r"(?:towards the client|at the end|last))?",
        each(_done),
        _LLM,
    ),
    Rule(
        "no such event",
        r'no event whose data (?:starts with|is) "(?P<start>[^"]+)"',
        each(_no_event_data),
        _LLM,
    ),
    Rule(
        "no empty event",
        r"(?:(?:the )?gateway emits )?no events? (?:with empty|without|that has no) data",
        each(_no_empty_event),
        _LLM,
    ),
    Rule(
        "comments",
        r"comments are not followed by a blank line of their own(?: once an id was "
        r"sent)?(?: \(.*\))?",
        each(_safe_comments),
        _LLM,
    ),
    Rule(
        "ids dropped",
        r"(?:ids?|retry)(?: and (?:ids?|retry))? (?:are|is) dropped|no (?:id|retry)"
        r"(?:: | )?(?:lines?|fields?)",
        each(_ids_dropped),
        _LLM,
    ),
    Rule(
        "sdk collects",
        rf"client collects {_TEXT}(?: without (?:an? )?(?:exception|error))?",
        each(_collects),
        _LLM,
    ),
    Rule(
        "sdk is content",
        r"(?:no|without(?: an?)?) exception(?: in the client)?|client (?:raises|gets) "
        r"no (?:exception|error)",
        each(_no_exception),
        _LLM,
    ),
    Rule("sdk raises", r"client (?:raises|gets)(?: an?)? (?P<error>[A-Z]\w+)", each(_raises), _LLM),
    Rule(
        "error event",
        r"(?:the |an? |one )*error event(?: (?:holds|with|has) (?:the )?(?:gateway's )"
        r"?(?:own |gateway )?code(?:, message)? and request_id)?",
        each(_error_event),
        _LLM,
    ),
    Rule(
        "events in order",
        rf"(?:all|every)(?: (?P<count>{NUMBER}))? (?:events?|chunks?) arrives?(?: in order)?",
        each(_events_in_order),
        _LLM,
    ),
    Rule(
        "finish after text",
        r"the chunk with (?:the )?text comes before the chunk with finish_reason"
        r"|(?:held )?text (?:comes|leaves|arrives) before (?:the )?finish_reason",
        each(_finish_after),
        _LLM,
    ),
    Rule(
        "one finish",
        rf"(?:exactly )?one finish_reason(?: {_REASON})?(?: for (?:index|choice) (?P<index>\d+))?",
        each(_one_finish),
        _LLM,
    ),
    Rule("no finish", r"no (?:invented |made-up )?finish_reason", each(_no_finish), _LLM),
    Rule("finish is", rf"finish(?:_reason)?(?: is)? {_REASON}", each(_finish_is), _LLM),
    Rule(
        "placeholders",
        rf"(?:exactly )?(?P<count>{NUMBER}) (?P<kind>[A-Z]+ )?placeholders?",
        each(_placeholders),
        _LLM,
    ),
    Rule(
        "letters kept",
        r"(?:the )?letters (?P<letters>(?:\w )+?)(?:and spaces (?:between )?)?(?:are )?kept",
        each(_letters_kept),
        _LLM,
    ),
    Rule(
        "all redacted",
        rf"all (?P<count>{NUMBER}) (?:are )?(?:redacted|masked)",
        each(_all_redacted),
        _LLM,
    ),
    Rule(
        "redaction",
        r"redaction (?:took place|happened|was applied)|(?:is |are )?(?:redacted|masked)",
        each(_redaction_took_place),
        _LLM,
    ),
    Rule(
        "decodes",
        r"(?:the )?client (?:decodes|can read|reads) (?:each|every|the) answer",
        each(_decodes),
        _LLM,
    ),
)
