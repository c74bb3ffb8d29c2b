"""Which documents are made up to look like what models write and people paste?

Prose, Markdown, code, configuration and logs, with values of every kind in them, in disguises of
every kind. The same number gives the same document.
"""

import random
from collections.abc import Callable

from tests.unit.redaction.laws import seeded
from tests.unit.redaction.samples import BODY, HEX, MASKED, jwt, key

_LEXICON = (
    "the a report we found that every second order was late because of customs in Halden and no "
    "one had called back yet please note see also however it's don't well-known e.g. approx. Dr. "
    "O'Brien caf\u00e9 na\u00efve M\u00fcller r\u00e9sum\u00e9 \u4f60\u597d \u043f\u0440\u0438"
    "\u0432\u0435\u0442 user_id max_tokens None True self.value"
)
_WORDS = _LEXICON.split()
_NUMBERS = ("7", "42", "1,234.56", "2026-11-30", "12:30", "3.14159", "100-200-3000", "v1.2.3")
_ENDS = (". ", ", ", "! ", "? ", ": ", "; ", " - ", " \u2014 ", "\u2026 ", ".\n\n", "\n", "  ")
# Values of the families that only the strict preset looks for.
_STRICT = (
    "+44 20 7946 0958",
    "(415) 555-2671",
    "8.8.8.8",
    "2001:db8::ff00:42:8329",
    "00:1B:44:11:3A:B7",
    "passport no. 123456789",
    "jane dot doe at example dot com",
    "jane [at] example [dot] com",
    '"jane doe"@example.com',
    "\u7528\u6237@\u4f8b\u5b50.\u5e7f\u544a",
    "943 476 5919",
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
)


def document(number: int) -> str:
    """Document `number`, 100 to 900 characters."""
    rnd = seeded(number)
    parts: list[str] = []
    size = rnd.choice((100, 250, 500, 900))
    while sum(map(len, parts)) < size:
        parts.append(rnd.choice(_KINDS)(rnd))
    return "".join(parts)


def _value(rnd: random.Random) -> str:
    if rnd.random() < 0.2:
        return rnd.choice(_STRICT)
    if rnd.random() < 0.2:
        return rnd.choice((key("sk-", 40), key("gh" + "p_", 36), jwt(120), HEX[:40], BODY[:60]))
    return _disguised(rnd.choice(MASKED)[1], rnd)


def _disguised(value: str, rnd: random.Random) -> str:
    disguise = rnd.randrange(12)
    if disguise == 0:
        return value.replace("@", rnd.choice(("%40", "&#64;", "\uff20", "\\u0040")))
    if disguise == 1:
        return value.replace(" ", rnd.choice(("\u00a0", "\u202f", "%20", "&nbsp;", "\n")))
    if disguise == 2:
        return value.replace("-", rnd.choice(("\u2011", "\u2013", "%2D")))
    if disguise == 3:
        place = rnd.randrange(len(value) + 1)
        return value[:place] + rnd.choice(("\u200b", "\u00ad", "\u0301", "\x1b[1m")) + value[place:]
    if disguise == 4:
        return value[: rnd.randrange(len(value) + 1)]
    return value


def _prose(rnd: random.Random) -> str:
    words = [rnd.choice(_WORDS) for _ in range(rnd.randrange(1, 9))]
    if rnd.random() < 0.5:
        words.insert(rnd.randrange(len(words) + 1), _value(rnd))
    if rnd.random() < 0.3:
        words.insert(rnd.randrange(len(words) + 1), rnd.choice(_NUMBERS))
    return " ".join(words) + rnd.choice(_ENDS)


def _markdown(rnd: random.Random) -> str:
    value = _value(rnd)
    return rnd.choice(
        (
            f"- **{rnd.choice(_WORDS)}**: {value}\n",
            f"| {rnd.choice(_WORDS)} | {value} | {rnd.choice(_NUMBERS)} |\n",
            f"[{rnd.choice(_WORDS)}](mailto:{value})",
            f"`{value}` ",
            f"> {value}\n\n",
            f"\u201c{value}\u201d ",
        )
    )


def _code(rnd: random.Random) -> str:
    value = _value(rnd)
    return rnd.choice(
        (
            f"{rnd.choice(('password', 'api_key', 'token', 'x'))} = '{value}'\n",
            f'{{"{rnd.choice(_WORDS)}": "{value}", "n": {rnd.choice(_NUMBERS)}}}\n',
            f"if user == {value}:  # {rnd.choice(_WORDS)}\n",
            f"curl -H 'Authorization: Bearer {value}' https://{value}/x?y={value}\n",
            f"{rnd.choice(_NUMBERS)}\t{value}\t{rnd.choice(_WORDS)}\r\n",
            f'<a href="{value}">{rnd.choice(_WORDS)}</a>',
        )
    )


_KINDS: tuple[Callable[[random.Random], str], ...] = (_prose, _prose, _prose, _markdown, _code)
