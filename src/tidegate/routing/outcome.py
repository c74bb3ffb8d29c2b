"""What happened to this attempt?

Lives here: the outcomes, the one table that says what follows from each, and the classification
of an upstream's answer. Does not live here: the phrases providers use (wording.py), the walk
over targets (failover.py), time-outs and sockets (the caller names those outcomes itself).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from tidegate.errors import (
    AllProvidersFailed,
    ContentFiltered,
    ContextLengthExceeded,
    UpstreamCredential,
    UpstreamError,
    UpstreamRejectedRequest,
)
from tidegate.routing.breaker import Verdict
from tidegate.routing.retry_after import retry_after_s
from tidegate.routing.wording import (
    CALLER_CODES,
    CONTEXT_CODES,
    FILTER_CODES,
    MODEL_CODES,
    RATE_CODES,
    Words,
    read_words,
)


class Outcome(StrEnum):
    """How an attempt ended; `open` and `cooling` say that there was none.

    The values are the words of the header `x-tidegate-attempts`.
    """

    OK = "ok"
    RATE_LIMITED = "rate_limited"
    QUOTA = "quota"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    SERVER_ERROR = "server_error"
    MALFORMED = "malformed"
    REJECTED = "rejected"
    CONTEXT = "context_too_long"
    FILTERED = "content_filter"
    CREDENTIAL = "credential"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    TRANSIENT = "transient"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    OPEN = "open"
    COOLING = "cooling"


class Onward(StrEnum):
    """Which targets a request may go on to."""

    ANY = "any target"
    ONCE = "any target, once in a request"
    LARGER_CONTEXT = "targets with a larger declared context"
    OTHER_CREDENTIAL = "targets with another credential, if the route allows it"
    NONE = "none"


class Trips(StrEnum):
    """Whether one such outcome is enough to leave the target alone."""

    NO = "no"
    NAMED = "if the target names its model"
    ALWAYS = "at once"


@dataclass(frozen=True, slots=True)
class Handling:
    """One row of the taxonomy.

    `error` is what the client gets if this was the last word; None where the client is served,
    or gone. `cools` lets the target rest, `trips` opens its breaker without counting. `alert`
    names the log line for the operator, who alone can mend it; "" for none.
    """

    onward: Onward
    verdict: Verdict
    error: type[UpstreamError] | None
    cools: bool = False
    trips: Trips = Trips.NO
    alert: str = ""

    @property
    def fails_over(self) -> bool:
        """Whether some other target may still serve the request."""
        return self.onward is not Onward.NONE


_DOWN = Handling(Onward.ANY, Verdict.FAILURE, AllProvidersFailed)
_BUSY = Handling(Onward.ANY, Verdict.NEUTRAL, AllProvidersFailed, cools=True)
_ELSEWHERE = Handling(Onward.ANY, Verdict.NEUTRAL, AllProvidersFailed)

# A refusal of one request is no news about the health of its target: counted as failure, one
# caller's bad prompt closes the target for all; counted as success, it hides real failures.
TAXONOMY: Mapping[Outcome, Handling] = MappingProxyType(
    {
        Outcome.OK: Handling(Onward.NONE, Verdict.SUCCESS, None),
        Outcome.RATE_LIMITED: _BUSY,
        Outcome.QUOTA: replace(_BUSY, alert="provider_quota_exhausted"),
        Outcome.TIMEOUT: _DOWN,
        Outcome.UNREACHABLE: _DOWN,
        Outcome.SERVER_ERROR: _DOWN,
        Outcome.MALFORMED: _DOWN,
        Outcome.REJECTED: Handling(Onward.NONE, Verdict.NEUTRAL, UpstreamRejectedRequest),
        Outcome.CONTEXT: Handling(Onward.LARGER_CONTEXT, Verdict.NEUTRAL, ContextLengthExceeded),
        Outcome.FILTERED: Handling(Onward.NONE, Verdict.NEUTRAL, ContentFiltered),
        # Callers' keys go to no provider: none of them can provoke it.
        Outcome.CREDENTIAL: Handling(
            Onward.OTHER_CREDENTIAL,
            Verdict.NEUTRAL,
            UpstreamCredential,
            trips=Trips.ALWAYS,
            alert="provider_credential_refused",
        ),
        # These two may be about the model. Every caller can provoke them where the name is passed
        # through, and would take the target away from all others.
        Outcome.FORBIDDEN: Handling(
            Onward.OTHER_CREDENTIAL,
            Verdict.NEUTRAL,
            UpstreamCredential,
            trips=Trips.NAMED,
            alert="provider_credential_refused",
        ),
        Outcome.NOT_FOUND: replace(_ELSEWHERE, trips=Trips.NAMED, alert="provider_model_not_found"),
        Outcome.TRANSIENT: replace(_ELSEWHERE, onward=Onward.ONCE),
        # Cut before anything left. After that nobody asks for a next target, and the client gets
        # the event of UpstreamInterrupted instead of an error of this table.
        Outcome.INTERRUPTED: _DOWN,
        Outcome.CANCELLED: Handling(Onward.NONE, Verdict.NEUTRAL, None),
        Outcome.OPEN: _ELSEWHERE,
        Outcome.COOLING: _ELSEWHERE,
    }
)

_BY_STATUS: Mapping[int, Outcome] = MappingProxyType(
    {
        401: Outcome.CREDENTIAL,
        402: Outcome.QUOTA,
        403: Outcome.FORBIDDEN,
        404: Outcome.NOT_FOUND,
        407: Outcome.UNREACHABLE,
        408: Outcome.TRANSIENT,
        409: Outcome.TRANSIENT,
        410: Outcome.NOT_FOUND,
        413: Outcome.CONTEXT,
        421: Outcome.UNREACHABLE,
        424: Outcome.SERVER_ERROR,
        425: Outcome.TRANSIENT,
        429: Outcome.RATE_LIMITED,
        498: Outcome.RATE_LIMITED,
        499: Outcome.TRANSIENT,
    }
)


def classify(status: int, headers: Mapping[str, str], body: bytes) -> Outcome:
    """The outcome of an answer that is not a good one.

    For statuses other than 200, and for error objects inside a 200 (whole body or one event of
    a stream). `headers` have lower-case names. A 200 without an error object is MALFORMED: ask
    only about answers already known to be bad. Never raises. Cost: one decode of at most 64 KiB.
    """
    words = read_words(body)
    named = headers.get("x-amzn-errortype", "").partition(":")[0].casefold()
    codes = words.codes | {named} if named else words.codes
    if status < 400:
        if not words.is_error:
            return Outcome.MALFORMED
        if words.status is None:
            return _by_words(words, codes)
        status = words.status
    return _by_status(status, words, codes)


def _by_status(status: int, words: Words, codes: frozenset[str]) -> Outcome:
    """A real status of 400 or more; the words only refine it."""
    plain = _BY_STATUS.get(status)
    if plain is None:
        plain = Outcome.SERVER_ERROR if status >= 500 else Outcome.REJECTED
    if status >= 500:
        # Their own code word, not their prose: a prompt may be quoted in a message.
        if codes & CONTEXT_CODES:
            return Outcome.CONTEXT
        return Outcome.FILTERED if codes & FILTER_CODES else plain
    if words.says_oversize and (status == 429 or codes & RATE_CODES):
        # Larger than a whole minute of our quota there: another target may take it, but one
        # large prompt must not make this one rest for everybody.
        return Outcome.TRANSIENT
    if status == 429:
        return Outcome.QUOTA if words.says_quota else plain
    if codes & RATE_CODES:
        return Outcome.RATE_LIMITED
    if codes & MODEL_CODES:
        return Outcome.NOT_FOUND
    refusal = _refusal(words)
    # A 401 is about the key, whatever their words say of permissions.
    return plain if refusal is Outcome.FORBIDDEN and status == 401 else refusal or plain


def _by_words(words: Words, codes: frozenset[str]) -> Outcome:
    """An error object inside a 200 that names no status."""
    if codes & RATE_CODES:
        return Outcome.RATE_LIMITED
    refusal = _refusal(words)
    if refusal is not None:
        return refusal
    if codes & MODEL_CODES:
        return Outcome.NOT_FOUND
    return Outcome.REJECTED if codes & CALLER_CODES else Outcome.SERVER_ERROR


def _refusal(words: Words) -> Outcome | None:
    if words.says_quota:
        return Outcome.QUOTA
    if words.says_context:
        return Outcome.CONTEXT
    if words.says_filter:
        return Outcome.FILTERED
    if words.says_credential:
        return Outcome.CREDENTIAL
    return Outcome.FORBIDDEN if words.says_forbidden else None


__all__ = ["TAXONOMY", "Handling", "Onward", "Outcome", "Trips", "classify", "retry_after_s"]
