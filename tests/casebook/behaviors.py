"""What does a provider do when a case says it in words?

Lives here: words such as "429 with Retry-After 30", "hangs", "sends 3 deltas, then closes the
socket" as an answerer of a scripted upstream. Does not live here: the listener (upstreams), whole
canned answers (answers).
"""

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

from tests.casebook import answers
from tests.casebook.rules.words import NUMBER, number, seconds
from tests.casebook.upstreams import Answerer, Conversation
from tidegate.testing.scripted import answer_bytes

Match = re.Match[str]
_JSON = ("Content-Type", "application/json")
_EVENTS = ("Content-Type", "text/event-stream")
_NUMERALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
LEAKY = "quota of org-4417 exceeded at db-3.us-east-1.internal"


class CannotBehave(ValueError):
    """Words that no rule of this vocabulary reads."""


def behavior(words: str) -> Answerer:
    """The answerer that `words` describe; raises CannotBehave."""
    text = " ".join(words.split()).strip(" .;,")
    for pattern, make in _FORMS:
        found = re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL)
        if found is not None:
            return make(found)
    raise CannotBehave(words)


async def ok(conversation: Conversation) -> None:
    """An ordinary answer, streamed if the request says so; usage 5 + 7 tokens."""
    await conversation.play(answers.default(streamed=wants_stream(conversation)))


def wants_stream(conversation: Conversation) -> bool:
    """Whether the request asks for a stream."""
    value = conversation.call.json
    return isinstance(value, dict) and value.get("stream") is True


def says(text: str, *, usage: dict[str, int] | None = None) -> Answerer:
    """That text, in the form the request asks for."""

    async def answer(conversation: Conversation) -> None:
        if wants_stream(conversation):
            await play(conversation, answers.stream([text]), streamed=True)
        else:
            more = {"usage": usage} if usage else {}
            await play_json(conversation, answers.completion(text, **more))

    return answer


async def play(conversation: Conversation, body: bytes, *, streamed: bool) -> None:
    """A 200 with that body."""
    kind = _EVENTS if streamed else _JSON
    await conversation.head(200, [kind], length=len(body))
    await conversation.send(body)


async def play_json(
    conversation: Conversation, value: object, *, status: int = 200, headers: Any = ()
) -> None:
    """A JSON answer."""
    data = json.dumps(value).encode()
    await conversation.head(status, [_JSON, *headers], length=len(data))
    await conversation.send(data)


def error(status: int, *, headers: Any = (), message: str = LEAKY, code: str = "x") -> Answerer:
    """An error answer with words that must not reach a client."""

    async def answer(conversation: Conversation) -> None:
        body = {"error": {"message": message, "type": "server_error", "code": code}}
        await play_json(conversation, body, status=status, headers=headers)

    return answer


async def hang(conversation: Conversation) -> None:
    """Takes the request and says nothing until the peer leaves."""
    await conversation.until_gone()


def after(delay_s: float, then: Answerer = ok) -> Answerer:
    """The same, later."""

    async def answer(conversation: Conversation) -> None:
        await conversation.pause(delay_s)
        await then(conversation)

    return answer


def deltas(texts: list[str], *, every_s: float = 0.0, end: str = "whole") -> Answerer:
    """A stream of text deltas; `end`: whole, closes, hangs, error."""

    async def answer(conversation: Conversation) -> None:
        await conversation.head(200, [_EVENTS], length=None)
        for at, text in enumerate(texts):
            if at and every_s:
                await conversation.pause(every_s)
            await conversation.piece(answers.event(answers.chunk({"content": text})))
        if end == "closes":
            conversation.cut()
        elif end == "hangs":
            await conversation.until_gone()
        elif end == "error":
            await conversation.piece(answers.event({"error": {"message": LEAKY}}))
            await conversation.end()
        else:
            tail = answers.event(answers.chunk({}, finish="stop")) + b"data: [DONE]\n\n"
            await conversation.piece(tail)
            await conversation.end()

    return answer


def in_turn(*answerers: Answerer) -> Answerer:
    """One after the other, from the beginning again after the last."""
    turns = itertools.cycle(answerers)

    async def answer(conversation: Conversation) -> None:
        await next(turns)(conversation)

    return answer


def _status(m: Match) -> Answerer:
    headers = [("X-Internal-Node", "db-3.us-east-1.internal")]
    if m["retry"]:
        headers.append(("Retry-After", m["retry"]))
    if m["location"]:
        headers.append(("Location", m["location"]))
    code = m["code"] or "x"
    if m["json"]:
        value = json.loads(m["json"].replace("…", '"x"'))

        async def answer(conversation: Conversation) -> None:
            await play_json(conversation, value, status=int(m["status"]), headers=headers)

        return answer
    if m["status"] == "200":
        return ok
    return error(int(m["status"]), headers=headers, code=code)


def _broken_ok(m: Match) -> Answerer:
    kinds: dict[str, tuple[str, bytes]] = {
        "text/html": ("text/html", b"<html>sorry</html>"),
        "empty body": ("application/json", b""),
        "cut json": ("application/json", json.dumps(answers.completion("cut"))[:60].encode()),
        '"choices": []': (
            "application/json",
            json.dumps(answers.completion("", choices=[])).encode(),
        ),
    }
    what = m["what"].lower()
    kind, body = kinds[what]

    async def answer(conversation: Conversation) -> None:
        await conversation.head(200, [("Content-Type", kind)], length=len(body))
        await conversation.send(body)

    return answer


def _finish_reason(m: Match) -> Answerer:
    message = {"role": "assistant", "content": m["content"]}
    choice = {"index": 0, "message": message, "finish_reason": m["reason"]}
    value = answers.completion("", choices=[choice])

    async def answer(conversation: Conversation) -> None:
        await play_json(conversation, value)

    return answer


def _first_event_error(m: Match) -> Answerer:
    return deltas([], end="error")


def _closes_at_once(m: Match) -> Answerer:
    async def answer(conversation: Conversation) -> None:
        await conversation.head(200, [_EVENTS], length=None)
        await conversation.end()

    return answer


def _comments(m: Match) -> Answerer:
    until_s = seconds(m["time"])

    async def answer(conversation: Conversation) -> None:
        await conversation.head(200, [_EVENTS], length=None)
        for _ in range(5):
            await conversation.piece(b": still working\n\n")
            await conversation.pause(until_s / 5)
        await conversation.piece(answers.event({"error": {"message": LEAKY}}))
        await conversation.end()

    return answer


def _some_deltas(m: Match) -> Answerer:
    # Words only: digits would be held, as the first half of a number could be.
    texts = [f"{word} " for word in _NUMERALS[: number(m["count"])]]
    return deltas(texts, end="closes")


def _header_drip(m: Match) -> Answerer:
    head = answer_bytes(200, headers=[_JSON], body=b"{}")

    async def answer(conversation: Conversation) -> None:
        for at in range(len(head)):
            await conversation.send(head[at : at + 1])
            await conversation.pause(1.0)

    return answer


def _body_drip(m: Match) -> Answerer:
    body = json.dumps(answers.completion("late")).encode()

    async def answer(conversation: Conversation) -> None:
        await conversation.head(200, [_JSON], length=len(body))
        for at in range(len(body)):
            await conversation.send(body[at : at + 1])
            await conversation.pause(1.0)

    return answer


def _alternating(m: Match) -> Answerer:
    return in_turn(*(behavior(part) for part in re.findall(r"\d{3}", m["codes"])))


_HANGS = (
    r"hangs?|is silent|silent|accepts TCP and says nothing|says nothing|never answers"
    r"|does not answer|accepts(?: the connection)? and hangs"
)
_FORMS: tuple[tuple[str, Callable[[Match], Answerer]], ...] = (
    (r"(?:is )?(?:ok|good|well|healthy)|answers(?: well)?|works", lambda m: ok),
    (_HANGS, lambda m: hang),
    (
        r"(?:needs|answers after|takes|is slow by) (?P<time>[0-9.]+ ?m?s)",
        lambda m: after(seconds(m["time"])),
    ),
    (
        r'(?:answers )?200(?: with)? (?P<what>"choices": \[\]|empty body|cut JSON|text/html)',
        _broken_ok,
    ),
    (
        r'(?:answers )?200 with content "(?P<content>[^"]*)" and finish_reason "(?P<reason>\w+)"',
        _finish_reason,
    ),
    (r'(?:answers )?200, first event \{"error":.*\}', _first_event_error),
    (r"(?:answers )?200 text/event-stream, closes without an event", _closes_at_once),
    (r"comments only for (?P<time>[0-9.]+ ?m?s), then an error event", _comments),
    (
        rf"sends (?P<count>{NUMBER}) (?:text )?deltas,? then"
        r" (?:closes the socket|dies|is cut|resets)(?: \(.*\))?",
        _some_deltas,
    ),
    (r"sends one header byte per second", _header_drip),
    (r"sends the JSON body one byte per second", _body_drip),
    (r"alternates (?P<codes>\d{3}(?:(?:,| and) ?\d{3})+)", _alternating),
    (
        r"(?:answers? |always )?(?P<status>[1-5]\d\d)"
        r"(?:(?:,| with)? Retry-After:? (?P<retry>[\w:, ]+?))?"
        r"(?:(?:,| with)? Location:? (?P<location>\S+))?"
        r"(?: (?P<code>[a-z]\w*_\w+))?"
        r"(?:(?: with)? (?P<json>\{.*\}))?",
        _status,
    ),
)
