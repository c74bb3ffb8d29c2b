"""Which whole answers does a failing provider give?

Lives here: errors, waits in every form in which providers write them, and answers with 200 that are
none. Does not live here: the words of the errors (faults_refusals), answers that come late or in
part (faults_streams), those below HTTP (faults_wire).
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from types import MappingProxyType

from tidegate.demo.exchange import Header, chunk, usage_chunk
from tidegate.demo.faults_act import EVENTS, JSON, USAGE, Act
from tidegate.demo.faults_refusals import REFUSALS, Refusal, refusal_of, shaped
from tidegate.demo.leaks import HOST, HTML, ORG

_PREFILL = Refusal(
    400,
    "invalid_request_error",
    None,
    f"{HOST}: the last message of a conversation must be the user's",
)


async def refuse(act: Act) -> None:
    """The error of the behavior's own name."""
    refusal = REFUSALS[act.order.name]
    await act.document(refusal.body, refusal.status)


async def any_status(act: Act) -> None:
    """Any status of the caller's choice, with an error object."""
    refusal = refusal_of(act.order.status)
    await act.document(refusal.body, refusal.status)


async def proxy_page(act: Act) -> None:
    """What a proxy in front of a dead provider says: its status, and a page for people."""
    await act.document(HTML, int(act.order.name), kind=b"text/html")


async def flap(act: Act) -> None:
    """Down for as many requests as it is up for, in turn."""
    length = act.order.times or 3
    if act.order.turn // length % 2:
        await act.good()
    else:
        refusal = REFUSALS["503"]
        await act.document(refusal.body, refusal.status)


async def no_prefill(act: Act) -> None:
    """Good, unless the last message is the assistant's."""
    messages = act.request.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if isinstance(last, dict) and last.get("role") == "assistant":
        await act.document(_PREFILL.body, _PREFILL.status)
    else:
        await act.good()


_Pairs = tuple[tuple[str, str], ...]
_ONE = "retry-after"
FORMS: Mapping[str, _Pairs] = MappingProxyType(
    {
        "seconds": ((_ONE, "{whole}"),),
        "fraction": ((_ONE, "{wait}"),),
        "ms": (("retry-after-ms", "{ms}"),),
        "date": ((_ONE, "{date}"),),
        "date-850": ((_ONE, "{date850}"),),
        "date-c": ((_ONE, "{datec}"),),
        "rfc3339": ((_ONE, "{iso}"),),
        "unix": ((_ONE, "{unix}"),),
        "duration": ((_ONE, "{wait}s"),),
        "reset-seconds": (
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "{wait}s"),
        ),
        "reset-minutes": (
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "0m{wait}s"),
        ),
        "reset-ms": (
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "{ms}ms"),
        ),
        "reset-unix-ms": (("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "{unixms}")),
        "reset-rfc3339": (
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "{iso}"),
        ),
        "ratelimit": (("ratelimit", '"default";r=0;t={whole}'),),
        "zero": ((_ONE, "0"),),
        "negative": ((_ONE, "-1"),),
        "past": ((_ONE, "{past}"),),
        "words": ((_ONE, "soon"),),
    }
)
"""How a wait may be written; the last four say nothing that can be followed."""

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def wait_headers(form: str, wait_s: float, now: datetime) -> tuple[Header, ...]:
    """The headers that say "come back `wait_s` seconds after `now`" in one of FORMS.

    Forms of whole seconds are rounded up. Raises KeyError for another form.
    """
    at = now + timedelta(seconds=wait_s)
    whole = (at + timedelta(microseconds=999_999)).replace(microsecond=0)
    day, month, time = _DAYS[whole.weekday()], _MONTHS[whole.month - 1], f"{whole:%H:%M:%S}"
    values = {
        "whole": ceil(wait_s),
        "wait": f"{wait_s:g}",
        "ms": round(wait_s * 1000),
        "unix": round(whole.timestamp()),
        "unixms": round(at.timestamp() * 1000),
        "iso": at.isoformat().replace("+00:00", "Z"),
        "date": f"{day[:3]}, {whole.day:02d} {month} {whole.year} {time} GMT",
        "date850": f"{day}, {whole.day:02d}-{month}-{whole:%y} {time} GMT",
        "datec": f"{day[:3]} {month} {whole.day:2d} {time} {whole.year}",
        "past": "Mon, 01 Jan 2024 00:00:00 GMT",
    }
    return tuple(
        (name.encode(), template.format_map(values).encode()) for name, template in FORMS[form]
    )


async def too_many_for(act: Act) -> None:
    """A 429 that says for how long, in the form that was ordered."""
    refusal = REFUSALS["429"]
    form = act.order.form or "seconds"
    headers = wait_headers(form, act.order.wait_s, datetime.now(UTC))
    await act.document(refusal.body, refusal.status, headers)


async def malformed(act: Act) -> None:
    """A page for people in the frame of an answer: JSON by its head, or one event."""
    if not act.stream:
        await act.document(HTML)
        return
    await act.head()
    await act.exchange.event(HTML)
    await act.exchange.end()


async def page(act: Act) -> None:
    """A page for people, and said so."""
    await act.document(HTML, kind=b"text/html")


async def redirect(act: Act) -> None:
    """Another address, in fact the same: who follows it comes back for ever."""
    await act.document(HTML, 307, ((b"location", b"/v1/chat/completions"),), b"text/html")


async def no_content(act: Act) -> None:
    """The status that says that there is nothing to say."""
    await act.head(status=204)
    await act.exchange.end()


async def empty_object(act: Act) -> None:
    """An object with nothing in it."""
    if not act.stream:
        await act.document({})
        return
    await act.head()
    await act.exchange.event({})
    await act.exchange.end()


async def empty(act: Act) -> None:
    """No body at all."""
    await act.document(b"", kind=EVENTS if act.stream else JSON)


async def wrong_content_type(act: Act) -> None:
    """The good answer, called plain text."""
    if not act.stream:
        await act.document(act.whole(), kind=b"text/plain")
        return
    await act.head(b"text/plain")
    await act.roles()
    await act.words()
    await act.finish()


async def other_form(act: Act) -> None:
    """The good answer in the form that was not asked for."""
    act.stream = not act.stream
    await act.good()


async def no_usage(act: Act) -> None:
    """Good, and never a word of what it used."""
    if act.stream:
        await act.good(usage=None)
        return
    answer = act.whole()
    del answer["usage"]
    await act.document(answer)


async def odd_usage(act: Act) -> None:
    """Good, with figures that are none: text, a negative number, a total below its parts."""
    await act.good({"prompt_tokens": "12", "completion_tokens": -31, "total_tokens": 1})


async def late_usage(act: Act) -> None:
    """Good, with the figures behind the end mark of a stream; in a document, behind all else."""
    if not act.stream:
        answer = act.whole()
        await act.document({**answer, "usage": answer.pop("usage")})
        return
    await act.head()
    await act.roles()
    await act.words()
    for index in range(act.choices):
        await act.exchange.event(chunk(act.model, index, {}, finish="stop"))
    await act.exchange.event(b"[DONE]")
    await act.exchange.event(usage_chunk(act.model, USAGE))
    await act.exchange.end()


async def error_first(act: Act) -> None:
    """An error in the clothes of a success: the first event, or the whole document."""
    body = shaped(refusal_of(act.order.status), act.order.form)
    if not act.stream:
        await act.document(body)
        return
    await act.head()
    await act.exchange.event(body)
    await act.exchange.end()


async def error_later(act: Act) -> None:
    """An error after five words; in a document, a choice that ended by one."""
    body = shaped(refusal_of(act.order.status), act.order.form)
    if not act.stream:
        half = {"role": "assistant", "content": "Hello from"}
        choice = {"index": 0, "message": half, "finish_reason": "error", **body}
        await act.document({**act.whole(), "choices": [choice]})
        return
    await act.head()
    await act.roles()
    await act.words(0, 5)
    await act.exchange.event(body)
    await act.exchange.end()


async def created_then_error(act: Act) -> None:
    """News of another dialect that something began, then that the account is empty."""
    error = REFUSALS["insufficient-quota"].body
    created = {"type": "response.created", "response": {"status": "in_progress", "user": ORG}}
    if not act.stream:
        await act.document({**created, **error})
        return
    await act.head()
    await act.exchange.event(created)
    await act.exchange.event(error)
    await act.exchange.end()


__all__ = [
    "FORMS",
    "any_status",
    "created_then_error",
    "empty",
    "empty_object",
    "error_first",
    "error_later",
    "flap",
    "late_usage",
    "malformed",
    "no_content",
    "no_prefill",
    "no_usage",
    "odd_usage",
    "other_form",
    "page",
    "proxy_page",
    "redirect",
    "refuse",
    "too_many_for",
    "wait_headers",
    "wrong_content_type",
]
