"""Which behaviors does a provider of the demo have, and what does each do?

Lives here: the one table of them, from which the command line's help, the reference page and the
tests are made. Does not live here: how they are played (faults_answers, faults_streams,
faults_wire), how one is chosen (providers).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tidegate.demo import faults_answers as answers
from tidegate.demo import faults_streams as streams
from tidegate.demo import faults_wire as wire
from tidegate.demo.faults_act import Act
from tidegate.demo.faults_refusals import SHAPES

Play = Callable[[Act], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Behavior:
    """One thing a provider can do with a request.

    `about` is one line for people, of a stream and of a plain answer. `wait_s` is the time in it
    that may be ordered otherwise (None: there is none).
    """

    name: str
    about: str
    play: Play
    wait_s: float | None = None


async def _good(act: Act) -> None:
    await act.good()


GROUPS: Mapping[str, tuple[Behavior, ...]] = MappingProxyType(
    {
        "Good answers": (
            Behavior("ok", "the good answer", _good),
            Behavior("comments", "good, with comments, ids and pings in the stream",
                     streams.comments),
            Behavior("odd-framing", "good, byte by byte, CR LF, no spaces, split data",
                     streams.odd_framing),
            Behavior("no-prefill", "good, but 400 if the last message is the assistant's",
                     answers.no_prefill),
            Behavior("wrong-content-type", "good, but called text/plain",
                     answers.wrong_content_type),
            Behavior("no-done", "good, but the stream lacks [DONE]", streams.no_done),
            Behavior("no-finish", "the whole text without a finish reason", streams.no_finish),
            Behavior("no-usage", "good, and usage is never reported", answers.no_usage),
            Behavior("odd-usage", "good, with usage that is no number", answers.odd_usage),
            Behavior("late-usage", "good, with usage after [DONE]", answers.late_usage),
        ),
        "Errors": (
            Behavior("400", "invalid request", answers.refuse),
            Behavior("401", "our key is refused", answers.refuse),
            Behavior("402", "payment is due", answers.refuse),
            Behavior("403", "our key may not", answers.refuse),
            Behavior("404", "no such model", answers.refuse),
            Behavior("408", "the provider waited too long for us", answers.refuse),
            Behavior("409", "a conflict, gone in a moment", answers.refuse),
            Behavior("413", "the body is too large", answers.refuse),
            Behavior("422", "the request cannot be processed", answers.refuse),
            Behavior("425", "too early", answers.refuse),
            Behavior("429", "too many requests, without a word about when", answers.refuse),
            Behavior("429-retry-after", "too many requests, come back after `wait` (see `form`)",
                     answers.too_many_for, 2.0),
            Behavior("insufficient-quota", "429, but the account is used up", answers.refuse),
            Behavior("low-credit", "400, but the account is used up", answers.refuse),
            Behavior("context-length", "400, the prompt is too long for the model",
                     answers.refuse),
            Behavior("content-filter", "400, the provider's policy refuses the prompt",
                     answers.refuse),
            Behavior("500", "an internal error", answers.refuse),
            Behavior("502", "bad gateway", answers.refuse),
            Behavior("503", "overloaded", answers.refuse),
            Behavior("504", "the provider's own time-out", answers.refuse),
            Behavior("520", "a page of the proxy: unknown error", answers.proxy_page),
            Behavior("521", "a page of the proxy: the provider is down", answers.proxy_page),
            Behavior("522", "a page of the proxy: no connection", answers.proxy_page),
            Behavior("523", "a page of the proxy: unreachable", answers.proxy_page),
            Behavior("524", "a page of the proxy: no answer in time", answers.proxy_page),
            Behavior("529", "overloaded, in Anthropic's words", answers.refuse),
            Behavior("status", "an error with the status of your choice (`status`)",
                     answers.any_status),
            Behavior("slow-error", "503 at once, and an error object that does not end",
                     streams.slow_error),
            Behavior("flap", "503 `times` times (3), then good as often, and again",
                     answers.flap),
        ),
        "Successes that are none": (
            Behavior("malformed", "200 with HTML in the frame of an answer", answers.malformed),
            Behavior("html", "200 with a page for people", answers.page),
            Behavior("redirect", "307 to itself", answers.redirect),
            Behavior("no-content", "204", answers.no_content),
            Behavior("empty-object", "200 with {}", answers.empty_object),
            Behavior("empty", "200 without a body", answers.empty),
            Behavior("other-form", "a document for a stream, a stream for a document",
                     answers.other_form),
            Behavior("error-first", "200 with an error as first event, or as the document",
                     answers.error_first),
            Behavior("created-then-error", "200, `response.created`, then an error",
                     answers.created_then_error),
            Behavior("bad-chunk", "one event, or a part of the document, is no JSON",
                     streams.bad_chunk),
            Behavior("bad-utf8", "a letter in the middle is none in UTF-8", streams.bad_utf8),
            Behavior("after-done", "more after [DONE], or behind the document",
                     streams.after_done),
            Behavior("bomb", "gzip that unpacks to a thousand times its size", streams.bomb),
            Behavior("too-long", "one event, or the document, of 16 MiB", streams.too_long),
            Behavior("error-later", "five words, then an error", answers.error_later),
        ),
        "Late and unfinished answers": (
            Behavior("slow", "nothing for `wait` (10 s), then good", streams.slow, 10.0),
            Behavior("no-accept", "its own port leaves callers waiting; elsewhere as `hang`",
                     streams.hang),
            Behavior("hang", "takes the request and never says a word", streams.hang),
            Behavior("head-only", "status and headers, then never a byte", streams.head_only),
            Behavior("slow-first-token", "the head at once, the first word after `wait` (10 s)",
                     streams.slow_first_token, 10.0),
            Behavior("role-only", "all that comes before the first word, then never a byte",
                     streams.role_only),
            Behavior("dribble", "comments or spaces for ever, every `wait` (0.05 s)",
                     streams.dribble, 0.05),
            Behavior("trickle", "a word each `wait` (1 s)", streams.trickle, 1.0),
            Behavior("cut", "half of the answer, then closed", streams.cut),
            Behavior("stall", "half of the answer, then never a byte", streams.stall),
        ),
        "Connections": (
            Behavior("early-hints", "good, after two interim heads", wire.early_hints),
            Behavior("until-close", "good, in HTTP/1.0: it ends with the connection",
                     wire.until_close),
            Behavior("refused", "its own port refuses connections; elsewhere a reset",
                     wire.reset),
            Behavior("reset", "a reset before the first byte", wire.reset),
            Behavior("hang-up", "closed before the first byte", wire.hang_up),
            Behavior("reset-later", "the first words, then a reset after `wait` (0.05 s)",
                     wire.reset_later, 0.05),
            Behavior("half-head", "half of a head, then closed", wire.half_head),
            Behavior("slow-head", "a head that never ends, a byte each `wait` (0.05 s)",
                     wire.slow_head, 0.05),
            Behavior("long-head", "a head of 256 KiB", wire.long_head),
            Behavior("no-http", "the greeting of another protocol", wire.no_http),
            Behavior("bad-frame", "a chunk whose length is no number", wire.bad_frame),
            Behavior("short-body", "fewer bytes than promised", wire.short_body),
            Behavior("silent-cut", "half of an answer that ends with the connection",
                     wire.silent_cut),
            Behavior("bad-coding", "called gzip, and is not", wire.bad_coding),
        ),
    }
)  # fmt: skip
"""Every behavior, in the order in which people read about them."""

FAULTS: Mapping[str, Behavior] = MappingProxyType(
    {behavior.name: behavior for group in GROUPS.values() for behavior in group}
)

OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "times": "for so many requests, then `ok` again; with several behaviours, for each of them",
        "wait": "seconds, in place of the time in parentheses",
        "status": "of `status`, `error-first` and `error-later`: any from 400 to 599 (500)",
        "form": f"of `429-retry-after`: {', '.join(answers.FORMS)}; of `error-first` and"
        f" `error-later`: {', '.join(SHAPES)}",
    }
)
"""What may stand beside `provider` and `behaviour` in the query of `POST /_set`."""

__all__ = ["FAULTS", "GROUPS", "OPTIONS", "Behavior", "Play"]
