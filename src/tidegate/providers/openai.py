"""How does one speak the OpenAI dialect: what to send, and what an answer says?

Lives here: the request for one attempt, and a typed look at one event or one whole answer. Does
not live here: sockets (transport), event framing (sse), redaction and rewriting of answers.
Everything is tolerant of unknown fields and of nulls, and believes nothing it has not checked.
"""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

import msgspec

from tidegate.providers.base import (
    Glance,
    MalformedEvent,
    Provider,
    ProviderRequest,
    UsageWish,
)
from tidegate.providers.overrides import overridden
from tidegate.providers.splice import in_front, member_span, replace_model, without_member
from tidegate.providers.strangers import stranger
from tidegate.providers.usage import read_usage
from tidegate.routing.outcome import Outcome, classify
from tidegate.routing.plan import Target

_PATH = "/chat/completions"
_NO_HEADERS: Mapping[str, str] = {}
_DONE = b"[DONE]"
# What frames a message belongs to the transport, whatever the configuration says.
_FRAMING = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_USAGE = b'"usage"'
_SPACES = b" \t\r\n"
# A null, then flat members to the end of the object. Quotation marks inside of strings are
# escaped, so this can be no part of one; and what only flat members follow is not nested.
_NULL_AT_END = re.compile(
    rb"""
    "usage"[ \t\r\n]*:[ \t\r\n]*null
    (
      (?:[ \t\r\n]*,[ \t\r\n]*"[^"\\]*+"[ \t\r\n]*:[ \t\r\n]*(?:"[^"\\]*+"|[^"\[\]{},\s]++))*+
      [ \t\r\n]*\}[ \t\r\n]*
    )\Z
    """,
    re.VERBOSE,
)
_ASKS = b'{"include_usage":true}'
_OPTIONS = "stream_options"


class _Piece(msgspec.Struct):
    """A delta or a message. `object` where providers disagree about the type."""

    role: object = None
    content: object = None
    reasoning_content: object = None
    reasoning: object = None
    refusal: object = None
    tool_calls: object = None
    function_call: object = None
    audio: object = None


class _Choice(msgspec.Struct):
    index: object = 0
    delta: _Piece | None = None
    message: _Piece | None = None
    text: object = None
    finish_reason: object = None
    error: object = None


class _Answer(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: object = None
    error: object = None
    kind: object = msgspec.field(name="object", default=None)
    type: object = None


_decoder = msgspec.json.Decoder(_Answer)
_ERROR_NAMES = ("error", "exception")


def chat_request(
    provider: Provider,
    target: Target,
    body: bytes,
    *,
    model: str | None,
    stream: bool,
    wish: UsageWish = "keep",
) -> ProviderRequest:
    """The request that asks `target` for a chat completion.

    `body` is a JSON object that strictjson has accepted and `model` its top-level "model" (None
    if absent). The same bytes are sent unless the target or the provider gives the model
    another name, the target sets parameters, or `wish` adds the one for a report of usage. The
    only credential in it is the target's own, and no header of the client's is taken over.
    Raises ValueError if `target` belongs to another provider.
    """
    if target.provider != provider.name:
        raise ValueError("the target belongs to another provider")
    sent = provider.model_sent(target.upstream_model, model)
    if sent is not None and sent != model:
        body = replace_model(body, sent)
    body = overridden(body, target.parameters)
    body = asking_for_usage(body, wish)
    return ProviderRequest(
        method="POST",
        url=_url(provider),
        headers=_headers(provider, target, stream=stream),
        body=body,
        proxy=provider.proxy,
    )


def usage_wish(document: Mapping[str, object]) -> UsageWish:
    """What to do to the request `document` so that its stream reports usage.

    "keep": it does, or it is no stream, or its options are odd, which is for the provider to
    judge. "add": it has no options. "change": it has some, without the wish.
    """
    options = document.get(_OPTIONS)
    if document.get("stream") is not True or not (options is None or isinstance(options, dict)):
        return "keep"
    if options is not None and options.get("include_usage") not in (None, False):
        return "keep"
    return "change" if _OPTIONS in document else "add"


def asking_for_usage(body: bytes, wish: UsageWish) -> bytes:
    """`body`, whose `usage_wish` is `wish`, with that wish and nothing else new.

    Cost: one copy; for "change" one scan as well.
    """
    if wish == "keep":
        return body
    span = member_span(body, _OPTIONS) if wish == "change" else None
    if span is None:
        return in_front(body, b'"stream_options":' + _ASKS)
    options = body[span[0] : span[1]]
    if options.startswith(b"{"):
        wished = member_span(options, "include_usage")
        if wished is None:
            options = in_front(options, b'"include_usage":true')
        else:
            options = options[: wished[0]] + b"true" + options[wished[1] :]
    else:
        options = _ASKS
    return body[: span[0]] + options + body[span[1] :]


def without_usage(data: bytes) -> bytes:
    """The payload of an event without its members called usage; see splice.without_member.

    `data` is a JSON object that `glance` has accepted. Cost: two microseconds for the null that
    follows the choices in nearly every event, else one scan.
    """
    at = data.find(_USAGE)
    if at < 0:
        return data
    quick = _NULL_AT_END.match(data, at) if data.find(_USAGE, at + 1) < 0 else None
    before = data[:at].rstrip(_SPACES)
    if quick is None or not before.endswith(b","):
        return without_member(data, "usage")
    return before[:-1].rstrip(_SPACES) + quick[1]


def refuses_usage(status: int, body: bytes) -> bool:
    """Whether an error answer says that the provider does not know `stream_options`."""
    return status in (400, 422) and (b"stream_options" in body or b"include_usage" in body)


def glance(data: bytes, *, event: str | None = None) -> Glance:
    """One look at the payload of one event. Cost: one typed decode, about a microsecond.

    `event` is the name of the event if it had one; "error" makes any payload an error. Raises
    MalformedEvent for a payload that is neither a JSON object nor the end mark.
    """
    if event is not None and event.casefold() in _ERROR_NAMES:
        return Glance(error=_error(data))
    if data.strip() == _DONE:
        return Glance(done=True)
    try:
        answer = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedEvent("not a JSON object of this dialect") from error
    if not answer.choices and answer.usage is None and not answer.error:
        return _look_at_stranger(answer, data)
    return _look(answer, data)


def glance_completion(body: bytes) -> Glance | Outcome:
    """One look at the body of a plain 200: a Glance, or why it is no answer.

    An answer parses, has no error object and at least one choice with a message or text. Empty
    text is an answer when it comes with a choice, as after a content filter.
    """
    try:
        answer = _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return Outcome.MALFORMED
    found = _look(answer, body)
    if found.error is not None:
        return found.error
    choices = answer.choices
    if not choices or any(c.message is None and not isinstance(c.text, str) for c in choices):
        return Outcome.MALFORMED
    return found


def _url(provider: Provider) -> str:
    base, _, query = provider.base_url.partition("?")
    added = urlencode(provider.query)
    query = "&".join(part for part in (query, added) if part)
    return base.rstrip("/") + _PATH + ("?" + query if query else "")


def _headers(provider: Provider, target: Target, *, stream: bool) -> tuple[tuple[str, str], ...]:
    headers = {
        "accept": "text/event-stream" if stream else "application/json",
        "accept-encoding": "gzip, br",
        "content-type": "application/json",
    }
    if provider.credentials:
        headers["authorization"] = f"Bearer {provider.credentials[target.credential]}"
    for name, value in provider.headers.items():
        if (lower := name.lower()) not in _FRAMING:
            headers[lower] = value
    return tuple(headers.items())


def _look(answer: _Answer, data: bytes) -> Glance:
    usage = read_usage(answer.usage)
    if answer.error or answer.kind == "error" or answer.type == "error":
        return Glance(error=_error(data), usage=usage)
    texts: list[str] = []
    finished: list[int] = []
    open_choices: list[int] = []
    content = False
    for choice in answer.choices or ():
        if choice.error or choice.finish_reason == "error":
            return Glance(error=_error(_wrapped(choice.error)), usage=usage)
        pieces = [piece for piece in (choice.delta, choice.message) if piece is not None]
        begun = bool(choice.text) or any(_has_content(piece) for piece in pieces)
        content = content or begun
        for piece in pieces:
            texts.extend(_texts(piece))
        texts.extend(_strings(choice.text))
        # Some upstreams send an empty reason with every event.
        if choice.finish_reason:
            finished.append(_index(choice.index))
        elif begun or any(piece.role for piece in pieces):
            open_choices.append(_index(choice.index))
    return Glance(
        content=content or bool(finished),
        usage=usage,
        only_usage=answer.usage is not None and not answer.choices,
        text="".join(texts),
        finished=tuple(finished),
        open_choices=tuple(open_choices),
    )


def _look_at_stranger(answer: _Answer, data: bytes) -> Glance:
    """An event with neither choices nor usage: an error in somebody's own words, or nothing.

    An empty list of choices is of this dialect: some providers begin with one, to say what their
    filters think of the prompt.
    """
    said = stranger(data)
    if said is None:
        return Glance(foreign=answer.choices is None)
    return Glance(error=_error(said))


def _index(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _has_content(piece: _Piece) -> bool:
    return bool(
        piece.content
        or piece.reasoning_content
        or piece.reasoning
        or piece.refusal
        or piece.tool_calls
        or piece.function_call
        or piece.audio
    )


def _texts(piece: _Piece) -> Iterator[str]:
    yield from _strings(piece.content)
    yield from _strings(piece.reasoning_content)
    if not piece.reasoning_content:
        # Some upstreams send the same reasoning under both names.
        yield from _strings(piece.reasoning)
    yield from _strings(piece.refusal)
    if isinstance(piece.tool_calls, list):
        for call in piece.tool_calls:
            if isinstance(call, dict):
                yield from _strings(call.get("function"))
                yield from _strings(call.get("custom"))
    yield from _strings(piece.function_call)
    if isinstance(piece.audio, dict):
        yield from _strings(piece.audio.get("transcript"))


def _strings(value: object, depth: int = 4) -> Iterator[str]:
    """The text in a string, in a list of parts, or in the name and arguments of a call."""
    if isinstance(value, str):
        yield value
    elif depth == 0:
        return
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part, depth - 1)
    elif isinstance(value, dict):
        for name in ("text", "thinking", "refusal", "name", "arguments", "input"):
            if name in value:
                yield from _strings(value[name], depth - 1)


def _wrapped(error: object) -> bytes:
    return msgspec.json.encode({"error": error})


def _error(data: bytes) -> Outcome:
    outcome = classify(200, _NO_HEADERS, data)
    return Outcome.SERVER_ERROR if outcome is Outcome.MALFORMED else outcome


__all__ = [
    "asking_for_usage",
    "chat_request",
    "glance",
    "glance_completion",
    "refuses_usage",
    "usage_wish",
    "without_usage",
]
