"""Which words does a provider use for its refusal?

Lives here: reading the error words out of a body of any known shape, and the phrases by which
providers speak of context, content policy and credit. Does not live here: what follows from
them (outcome.py). Nothing read here is ever shown to a client.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

MAX_BODY_BYTES = 65_536
_MAX_TEXT_CHARS = 4_096

CONTEXT_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "model_context_window_exceeded",
        "request_too_large",
    }
)
FILTER_CODES = frozenset(
    {
        "content_filter",
        "content_filter_error",
        "content_policy_violation",
        "data_inspection_failed",
        "datainspectionfailed",
        "moderation_blocked",
        "responsibleaipolicyviolation",
    }
)
QUOTA_CODES = frozenset(
    {
        "arrearage",
        "billing_hard_limit_reached",
        "billing_not_active",
        "exceeded_current_quota_error",
        "insufficient_balance",
        "insufficient_credits",
        "insufficient_quota",
        "insufficient_user_quota",
    }
)
RATE_CODES = frozenset(
    {
        "rate_limit_error",
        "rate_limit_exceeded",
        "rate_limit_reached_error",
        "resource_exhausted",
        "throttling",
        "throttlingexception",
        "too_many_requests",
    }
)
MODEL_CODES = frozenset(
    {"deploymentnotfound", "model_not_found", "not_found", "not_found_error", "notfounderror"}
)
CREDENTIAL_CODES = frozenset(
    {
        "api_key_invalid",
        "authentication_error",
        "authenticationerror",
        "incorrect_api_key_error",
        "invalid_api_key",
        "invalid_authentication_error",
        "unauthenticated",
    }
)
PERMISSION_CODES = frozenset({"permission_denied", "permission_error"})
CALLER_CODES = frozenset(
    {
        "badrequesterror",
        "bad_request",
        "bad_request_error",
        "invalid_argument",
        "invalid_request",
        "invalid_request_error",
        "unprocessable_entity",
        "validation_error",
        "validationexception",
    }
)

# A caller's text may be echoed inside a message, so these two only choose between refusals of
# this one request: they never make a target rest.
_CONTEXT = re.compile(
    r"maximum (?:context|prompt|model) length"
    r"|context (?:length|window|size)[^.]{0,40}(?:exceeded|of only)"
    r"|exceeds?(?: the)?(?: available)? context (?:limit|size|window|length)"
    r"|longer than the model's context length"
    r"|prompt is too long"
    r"|input is too long for requested model"
    r"|too many (?:input )?tokens"
    r"|(?:input|prompt) tokens? (?:count )?(?:exceeds?|is \d+ but)"
    r"|input token count[^.]{0,40}(?:exceeds the maximum|but model only supports)"
    r"|reduce the length of the (?:messages|prompt|input)"
    r"|`inputs` tokens \+ `max_new_tokens` must be"
    r"|request exceeded model token limit"
    r"|range of input length should be"
    r"|number of input tokens \d+ cannot exceed",
    re.ASCII,
)
_FILTER = re.compile(
    r"content management policy"
    r"|blocked by content filtering policy"
    r"|rejected as a result of our safety system"
    r"|violat\w{1,4} (?:our |its |the )?usage (?:policy|policies|guidelines)"
    r"|content exists risk"
    r"|inappropriate content"
    r"|considered high risk"
    r"|your input was flagged",
    re.ASCII,
)
# These make a target rest for everybody, or blame our own key. They count only as the first
# words of the message, where no provider puts what the caller sent: a prompt that quotes them
# must not take a target away from the other tenants.
_QUOTA = re.compile(
    r"your credit balance is too low"
    r"|insufficient (?:balance|credits?|quota|funds)"
    r"|this request requires more credits"
    r"|access denied, please make sure your account is in good standing"
    r"|your (?:newly created )?team\b[^.]{0,80}(?:used all available credits|have any credits)",
    re.ASCII,
)
_CREDENTIAL = re.compile(r"incorrect api key provided|api key not valid|invalid api key", re.ASCII)
_OVERSIZE = re.compile(r"request too large for", re.ASCII)


@dataclass(frozen=True, slots=True)
class Words:
    """What an error body says: lower-case code words, lower-case text, a numeric status.

    `is_error` is false for a body that carries no error at all; `is_json` for one that is not
    JSON.
    """

    codes: frozenset[str]
    text: str
    status: int | None
    is_error: bool
    is_json: bool

    @property
    def says_context(self) -> bool:
        """The prompt is longer than the window."""
        return bool(self.codes & CONTEXT_CODES) or _CONTEXT.search(self.text) is not None

    @property
    def says_filter(self) -> bool:
        """The provider's content policy refused."""
        return bool(self.codes & FILTER_CODES) or _FILTER.search(self.text) is not None

    @property
    def says_quota(self) -> bool:
        """Our account has no credit left."""
        return bool(self.codes & QUOTA_CODES) or _QUOTA.match(self.text) is not None

    @property
    def says_credential(self) -> bool:
        """Our key is refused."""
        return bool(self.codes & CREDENTIAL_CODES) or _CREDENTIAL.match(self.text) is not None

    @property
    def says_forbidden(self) -> bool:
        """Our key is good, but not for this."""
        return bool(self.codes & PERMISSION_CODES)

    @property
    def says_oversize(self) -> bool:
        """This one request is larger than a whole minute of our rate limit there."""
        return _OVERSIZE.match(self.text) is not None


def read_words(body: bytes) -> Words:
    """The words of an error body. Never raises; cost bounded by 64 KiB, beyond that no words."""
    if len(body) > MAX_BODY_BYTES:
        return Words(frozenset(), "", None, is_error=False, is_json=False)
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = body[:_MAX_TEXT_CHARS].decode("utf-8", "replace").strip().casefold()
        return Words(frozenset(), text, None, is_error=False, is_json=False)
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return Words(frozenset(), "", None, is_error=False, is_json=True)
    error = value.get("error")
    is_error = bool(error) or value.get("object") == "error" or value.get("type") == "error"
    levels = [value]
    if isinstance(error, dict):
        levels = [error, value]
        levels += _dicts(error.get("innererror"), error.get("details"))
    elif isinstance(error, str):
        levels = [{"message": error}, value]
    text = " ".join(_texts(levels, error))[:_MAX_TEXT_CHARS]
    return Words(
        codes=frozenset(_codes(levels)),
        text=text.strip().casefold(),
        status=_status(levels),
        is_error=is_error,
        is_json=True,
    )


def _dicts(*values: object) -> Iterator[dict[str, object]]:
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield item


def _codes(levels: list[dict[str, object]]) -> Iterator[str]:
    for level in levels:
        for name in ("code", "type", "error_type", "status", "reason", "__type"):
            word = level.get(name)
            if isinstance(word, str) and len(word) <= 80:
                yield word.rpartition("#")[2].casefold()


def _texts(levels: list[dict[str, object]], error: object) -> Iterator[str]:
    for level in levels[:2]:
        for name in ("message", "detail", "msg"):
            text = level.get(name)
            if isinstance(text, str):
                yield text[:_MAX_TEXT_CHARS]
    # An aggregator wraps the provider's own body.
    metadata = error.get("metadata") if isinstance(error, dict) else None
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, str):
        yield raw[:_MAX_TEXT_CHARS]


def _status(levels: list[dict[str, object]]) -> int | None:
    for level in levels[:2]:
        for name in ("code", "status", "status_code"):
            number = level.get(name)
            if (
                isinstance(number, str)
                and len(number) == 3
                and number.isascii()
                and number.isdigit()
            ):
                number = int(number)
            if isinstance(number, int) and 400 <= number <= 599:
                return number
    return None


__all__ = ["MAX_BODY_BYTES", "Words", "read_words"]
