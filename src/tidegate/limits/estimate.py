"""How many tokens may this request cost?

Lives here: a guess by character classes, made before the call and corrected by what the
provider reports after it. Does not live here: any vocabulary (exact counting needs one, and a
download at run time is out of the question), what a limit does with the number (ledger).

Token counts of one class of characters lie close together, those of two classes do not: five
letters make a token, fewer spaces, digits and signs; unbroken runs such as base64 take 1.5 bytes
for one. Outside ASCII a letter of an alphabet is about 0.4 tokens, an ideograph 0.8. The weights
are a fit to texts whose tokens were counted; `tidegate estimate` shows how far off they are.
Nothing here raises, whatever the body holds: a request of odd shape is for the provider to
refuse.
"""

import math
import re
import string
from collections.abc import Iterator, Mapping

from tidegate.limits.ledger import MAX_AMOUNT, Need

DEFAULT_OUTPUT_TOKENS = 1024
"""Reserved for an answer whose length the caller did not bound."""

SAFETY = 1.1
"""Estimates are raised by this factor: the settlement gives back what was too much."""

MESSAGE_TOKENS = 4
"""What a message costs besides its text: its role and its frame."""

MEDIA_TOKENS = 1000
"""An image, sound or file, before its size counts; providers bill none by its base64 text."""

_LETTERS = string.ascii_letters.encode()
_SPACES = string.whitespace.encode()
_DIGITS = string.digits.encode()
# Tokens for a character of each class.
_LETTER, _SPACE, _DIGIT, _SIGN = 0.2, 0.27, 0.65, 0.45
_DENSE_BYTE = 1 / 1.5
_ALPHABETIC, _IDEOGRAPHIC = 0.4, 0.8
_DENSE = re.compile(rb"[A-Za-z0-9+/=]{24,}")
_METER_CHARS = 4096

# Only what this dialect obeys: a field that the provider ignores must not buy a small estimate.
_OUTPUT_FIELDS = ("max_tokens", "max_completion_tokens")
_CHOICE_FIELDS = ("n", "best_of")
# Names and settings: no model reads them.
_NOT_PROMPT = frozenset(
    {"logit_bias", "metadata", "model", "prompt_cache_key", "safety_identifier", "user"}
)
# In a definition the model reads the field names as well; in a message they are the frame.
_DEFINITIONS = frozenset({"functions", "response_format", "tools"})
_FRAME = frozenset({"role", "type"})
_MEDIA = frozenset({"data", "file_data", "image_url", "url"})


def estimate_request(
    body: Mapping[str, object], *, default_output_tokens: int = DEFAULT_OUTPUT_TOKENS
) -> Need:
    """What the chat completion `body` may cost: prompt (with tools and system text) and answer.

    The answer is the larger of the two limits the caller may give, for each of its `n`
    choices; `default_output_tokens` each, marked as our guess, if there is none. Never raises;
    no figure exceeds MAX_AMOUNT. Cost: one pass over the strings of the body.
    """
    output_tokens, is_default = answer_tokens(body, default_output_tokens)
    return Need(
        input_tokens=_prompt_tokens(body),
        output_tokens=output_tokens,
        output_is_default=is_default,
    )


def answer_tokens(
    body: Mapping[str, object], default_output_tokens: int = DEFAULT_OUTPUT_TOKENS
) -> tuple[int, bool]:
    """The most that the answer to `body` may be, and whether that is only our guess."""
    choices = max(1, *(_whole(body.get(field)) for field in _CHOICE_FIELDS))
    most = max(_whole(body.get(field)) for field in _OUTPUT_FIELDS)
    return min((most or default_output_tokens) * choices, MAX_AMOUNT), most == 0


def estimate_text(text: str) -> int:
    """About how many tokens `text` is, on the safe side; 0 for the empty string only."""
    return math.ceil(_weigh(text) * SAFETY)


class TextMeter:
    """Counts a text that comes in pieces, holding at most a few thousand characters of it."""

    __slots__ = ("_chars", "_held", "_weight")

    def __init__(self) -> None:
        self._held: list[str] = []
        self._chars = 0
        self._weight = 0.0

    def add(self, text: str) -> None:
        """Count `text` in. Pieces are joined before they are weighed, so cuts hardly matter."""
        self._held.append(text)
        self._chars += len(text)
        if self._chars >= _METER_CHARS:
            self._weigh_held()

    @property
    def tokens(self) -> int:
        """Tokens so far, without a safety factor: this is a count, not a reservation."""
        if self._chars:
            self._weigh_held()
        return math.ceil(self._weight)

    @property
    def estimate(self) -> int:
        """What estimate_text says of the whole; cuts hardly matter."""
        if self._chars:
            self._weigh_held()
        return math.ceil(self._weight * SAFETY)

    def _weigh_held(self) -> None:
        self._weight += _weigh("".join(self._held))
        self._held.clear()
        self._chars = 0


def _weigh(text: str) -> float:
    plain = text.encode("ascii", "ignore")
    weight = _weigh_others(text, len(text) - len(plain), len(plain))
    if len(plain) >= 24:
        loose = _DENSE.sub(b"", plain)
        weight += (len(plain) - len(loose)) * _DENSE_BYTE
        plain = loose
    for characters, each in ((_LETTERS, _LETTER), (_SPACES, _SPACE), (_DIGITS, _DIGIT)):
        rest = plain.translate(None, characters)
        weight += (len(plain) - len(rest)) * each
        plain = rest
    return weight + len(plain) * _SIGN


def _weigh_others(text: str, count: int, plain_bytes: int) -> float:
    """The `count` characters outside ASCII: alphabets take two bytes each in UTF-8, the rest more.

    Emoji, which take four, come out at one and a half ideographs.
    """
    if not count:
        return 0.0
    encoded_bytes = len(text.encode("utf-8", "surrogatepass")) - plain_bytes
    longer = encoded_bytes - 2 * count
    return (count - longer) * _ALPHABETIC + longer * _IDEOGRAPHIC


def _prompt_tokens(body: Mapping[str, object]) -> int:
    weight, extra = 0.0, 0
    for field, value in body.items():
        if field in _NOT_PROMPT:
            continue
        if field == "messages" and isinstance(value, list):
            extra += MESSAGE_TOKENS * len(value)
        for key, text in _texts(value, with_keys=field in _DEFINITIONS):
            if key in _MEDIA and (len(text) > 512 or text.startswith(("data:", "http"))):
                extra += MEDIA_TOKENS + len(text) // 2000
            elif key not in _FRAME or field in _DEFINITIONS:
                weight += _weigh(text)
    return min(math.ceil(weight * SAFETY) + extra, MAX_AMOUNT)


def _texts(value: object, *, with_keys: bool) -> Iterator[tuple[str, str]]:
    """Every string below `value` with the key it stands under; no recursion, so no depth limit."""
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        key, one = waiting.pop()
        if isinstance(one, str):
            yield key, one
        elif isinstance(one, Mapping):
            waiting.extend((str(name), inner) for name, inner in one.items())
            if with_keys:
                # A name costs its own tokens and the punctuation around it.
                yield "", ": ".join(str(name) for name in one)
        elif isinstance(one, list | tuple):
            waiting.extend((key, inner) for inner in one)


def _whole(value: object) -> int:
    """A positive number of tokens or choices, however it is written; 0 for anything else.

    A provider may read "4096" or 4096.0 as 4096, so those must not pass as unbounded.
    """
    if isinstance(value, bool):
        return 0
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return 0
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        value = int(min(max(value, 0.0), float(MAX_AMOUNT)))
    return max(0, min(value, MAX_AMOUNT)) if isinstance(value, int) else 0


__all__ = [
    "DEFAULT_OUTPUT_TOKENS",
    "MEDIA_TOKENS",
    "MESSAGE_TOKENS",
    "SAFETY",
    "TextMeter",
    "answer_tokens",
    "estimate_request",
    "estimate_text",
]
