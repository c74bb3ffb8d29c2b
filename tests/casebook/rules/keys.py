"""What does each machine-readable key of `expect` check?

The keys hold for the base requests (all of them, if there are several), never for variants.
Does not live here: sentences (the other rule modules).
"""

from collections.abc import Callable, Mapping
from typing import Any

from tests.casebook.rules import profiles
from tests.casebook.rules.stream import joined
from tests.casebook.seen import WIDEN, Exchange, Seen, check, equal, parsed, same, short, strings

KeyRule = Callable[[Seen, Any], None]


def _status(seen: Seen, wanted: Any) -> None:
    allowed = wanted if isinstance(wanted, list) else [wanted]
    for exchange in _some(seen):
        status = exchange.status
        denial = seen.profile == "spec" and exchange.error_code not in (None, -32600, -32700)
        fits = status in allowed or (denial and status == 403 and 200 in allowed)
        check(fits, f"{exchange.name}: status {status}, {short(exchange.text)}")


def _some(seen: Seen) -> list[Exchange]:
    check(seen.exchanges, "no exchange took place")
    return seen.exchanges


def _statuses(seen: Seen, wanted: list[Any]) -> None:
    got = [exchange.status for exchange in seen.exchanges]
    fits = len(got) == len(wanted) and all(
        status in (one if isinstance(one, list) else [one])
        for status, one in zip(got, wanted, strict=True)
    )
    check(fits, f"statuses {got} instead of {wanted}")


def _error_code(seen: Seen, wanted: Any) -> None:
    if seen.case.kind == "stdio":
        _stdio_code(seen, wanted)
        return
    for exchange in _some(seen):
        code = exchange.error_code
        fits = code == wanted or (
            isinstance(wanted, int) and profiles.fits(exchange.rpc, wanted, seen.profile)
        )
        check(fits, f"{exchange.name}: status {exchange.status}, {short(exchange.text)}")


def _stdio_code(seen: Seen, wanted: Any) -> None:
    """Every refusal has this code, and there is one (sentences say which calls pass)."""
    refused = [reply for reply in seen.talk.replies if reply.refused]
    check(refused, f"no error: {short([reply.message for reply in seen.talk.replies])}")
    for reply in refused:
        fits = profiles.fits(reply.message, wanted, seen.profile)
        business = seen.profile == "brief" and reply.code is None
        check(fits or business, short(reply.message))


def _stream_text(seen: Seen, wanted: str) -> None:
    for exchange in _some(seen):
        got = joined(exchange)
        check(got == wanted, f"{_label(exchange)}{short(got)} instead of {short(wanted)}")


def _label(exchange: Exchange) -> str:
    return f"{exchange.label}: " if exchange.label else f"status {exchange.status}, text "


def _stream_texts(seen: Seen, wanted: Mapping[str, str]) -> None:
    for exchange in _some(seen):
        for index, text in wanted.items():
            equal(joined(exchange, int(index)), text, f"choice {index}")


def _tool_arguments(seen: Seen, wanted: Any) -> None:
    for exchange in _some(seen):
        texts = list(exchange.chat.arguments().values())
        wanted_texts = wanted if isinstance(wanted, list) else [wanted]
        check(len(texts) == len(wanted_texts), f"arguments of {len(texts)} calls: {short(texts)}")
        for text, one in zip(texts, wanted_texts, strict=True):
            value = one if isinstance(one, dict) else parsed(one)
            if value is None:
                equal(text, one, "arguments")
            else:
                check(parsed(text) is not None, f"not JSON: {short(text)}")
                equal(parsed(text), value, "arguments")


def visible(exchange: Exchange) -> list[str]:
    """Every text a client can see: the body as it is, its strings, its joined texts, headers."""
    values = [event.json for event in exchange.events] or [exchange.json]
    chat = exchange.chat
    return [
        exchange.text,
        *(text for value in values for text in strings(value)),
        *chat.texts.values(),
        *chat.arguments().values(),
        *(f"{name}: {value}" for name, value in exchange.headers),
    ]


def _must_not_contain(seen: Seen, wanted: list[str]) -> None:
    texts = [(e.name, text) for e in seen.exchanges for text in visible(e)]
    texts += [("reply", reply.line) for reply in seen.talk.replies]
    if seen.case.kind == "stdio":
        texts += [("stdout", line) for line in seen.talk.impure]
    check(texts, "there was no answer")
    for word in wanted:
        found = next(((where, text) for where, text in texts if word in text), None)
        if found is not None:
            where, text = found
            at = text.find(word)
            raise_ = f"{where}: {word!r} in {short(text[max(0, at - 40) :])}"
            check(holds=False, seen=raise_)


def _must_contain(seen: Seen, wanted: list[str]) -> None:
    texts = [text for e in seen.exchanges for text in visible(e)]
    texts += [reply.line for reply in seen.talk.replies]
    for word in wanted:
        check(any(word in text for text in texts), f"{word!r} is not there: {short(texts[:1])}")


def _upstream_must_not_contain(seen: Seen, wanted: list[str]) -> None:
    for exchange in seen.exchanges:
        for call in exchange.calls:
            raw = call.body.decode("utf-8", "replace")
            heads = "\n".join(f"{name}: {value}" for name, value in call.headers)
            for word in wanted:
                inside = word in raw or any(word in text for text in strings(call.json))
                check(not inside and word not in heads, f"{exchange.name}: {word!r} went upstream")


def _upstream_must_contain(seen: Seen, wanted: list[str]) -> None:
    bodies = [t for e in seen.exchanges for call in e.calls for t in strings(call.json)]
    for word in wanted:
        check(any(word in text for text in bodies), f"{word!r} did not go upstream")


def _requests_to(server: str) -> KeyRule:
    def judge(seen: Seen, wanted: Any) -> None:
        calls = [call for e in seen.exchanges for call in e.calls if server in ("", call.server)]
        name = f"{server or 'upstream'} requests"
        allowed = wanted if isinstance(wanted, list) else [wanted]
        check(len(calls) in allowed, f"{len(calls)} {name} instead of {wanted}")

    return judge


def _executed(seen: Seen, wanted: list[str]) -> None:
    got = [name for exchange in seen.exchanges for name in exchange.executed]
    equal(got, wanted, "executed")


def _executed_lacks(seen: Seen, wanted: list[str]) -> None:
    got = [name for exchange in seen.everything for name in exchange.executed]
    found = [name for name in got if name in wanted]
    check(not found, f"executed {short(found)}")


def _reply_ids(seen: Seen, wanted: list[Any]) -> None:
    """As a set with repetitions: answers may overtake each other. Types count."""
    left = [reply.id for reply in seen.talk.replies]
    for one in wanted:
        at = next((n for n, got in enumerate(left) if same(got, one)), None)
        check(at is not None, f"no reply with id {short(one)} in {short(left)}")
        left.pop(at or 0)
    check(not left, f"more replies: {short(left)}")


def _replies(seen: Seen, wanted: list[dict[str, Any]]) -> None:
    left = list(seen.talk.replies)
    for one in wanted:
        at = next((n for n, reply in enumerate(left) if _like(reply.message, one, seen)), None)
        check(at is not None, f"no reply like {short(one)} in {short([r.message for r in left])}")
        left.pop(at or 0)
    check(not left, f"more replies: {short([reply.message for reply in left])}")


def _like(message: dict[str, Any], wanted: dict[str, Any], seen: Seen) -> bool:
    for key, value in wanted.items():
        if key == "error_code":
            if not profiles.fits(message, value, seen.profile):
                return False
        elif key not in message or not same(message[key], value):
            return False
    return True


def _exit_code(seen: Seen, wanted: Any) -> None:
    allowed = wanted if isinstance(wanted, list) else [wanted]
    got = seen.talk.exit_code
    check(got in allowed, f"exit code {got}: {short(seen.talk.stderr[-200:])}")


def _exit_within(seen: Seen, wanted: float) -> None:
    after_s = seen.talk.exit_after_s
    check(after_s is not None, "it did not end")
    check((after_s or 0.0) <= wanted * WIDEN, f"ended after {after_s:.1f} s")


def _client_error(seen: Seen, wanted: Any) -> None:
    for exchange in _some(seen):
        check(exchange.by_sdk, "the SDK did not read this answer")
        error = exchange.client_error
        names = [] if error is None else [kind.__name__ for kind in type(error).__mro__]
        name = names[0] if names else "nothing"
        fits = error is None if wanted is None else str(wanted) in names
        check(fits, f"the client raised {name}: {short(str(error))}")


def _valid_ids(seen: Seen, wanted: list[Any]) -> None:
    _by_validity(seen, wanted, valid=True)


def _invalid_ids(seen: Seen, wanted: list[Any]) -> None:
    _by_validity(seen, wanted, valid=False)


def _by_validity(seen: Seen, wanted: list[Any], *, valid: bool) -> None:
    for one in wanted:
        found = seen.talk.with_id(one)
        check(len(found) == 1, f"{len(found)} replies to id {short(one)}")
        message = found[0].message
        refused = profiles.wrong_arguments(message, seen.profile)
        check(refused != valid, f"id {short(one)}: {short(message)}")


def _headers(seen: Seen, wanted: Mapping[str, Any]) -> None:
    for exchange in _some(seen):
        for name, value in wanted.items():
            got = exchange.header(name)
            fits = got is None if value is None else got is not None and str(value) in got
            check(fits, f"{name}: {got}")


def _finish_reason(seen: Seen, wanted: Any) -> None:
    for exchange in _some(seen):
        equal(exchange.chat.finishes(), [wanted], "finish reasons")


KEYS: Mapping[str, KeyRule] = {
    "status": _status,
    "statuses": _statuses,
    "error_code": _error_code,
    "stream_text": _stream_text,
    "stream_texts": _stream_texts,
    "text": _stream_text,
    "content": _stream_text,
    "tool_arguments": _tool_arguments,
    "must_not_contain": _must_not_contain,
    "must_contain": _must_contain,
    "upstream_must_not_contain": _upstream_must_not_contain,
    "upstream_must_contain": _upstream_must_contain,
    "upstream_requests": _requests_to(""),
    "primary_requests": _requests_to("primary"),
    "backup_requests": _requests_to("backup"),
    "executed": _executed,
    "executed_lacks": _executed_lacks,
    "reply_ids": _reply_ids,
    "replies": _replies,
    "exit_code": _exit_code,
    "exit_within_s": _exit_within,
    "client_error": _client_error,
    "valid_ids": _valid_ids,
    "invalid_ids": _invalid_ids,
    "headers": _headers,
    "finish_reason": _finish_reason,
}
