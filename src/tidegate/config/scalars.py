"""Which value does this bare word stand for, and would every YAML reader agree?

Lives here: the resolution of plain scalars (the intersection of YAML 1.1 and 1.2) and the words
on which the two differ. Does not live here: the document around them (document).
"""

import re
from dataclasses import dataclass

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_OCTAL = re.compile(r"[-+]?0[0-7]+")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_BASED = re.compile(r"[-+]?0(x[0-9a-fA-F_]+|o[0-7]+|b[01_]+)")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_UNDERSCORES = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?")
_OTHER_BOOLEANS = {"yes": True, "on": True, "no": False, "off": False}
# Far beyond every bound in the models; longer ones would only cost time.
_MOST_DIGITS = 40

Scalar = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Why readers disagree about the bare word `text`, and the plain value it may be meant as."""

    text: str
    reading: str
    plain: str


def resolve(text: str) -> tuple[Scalar, Ambiguity | None]:
    """The value of the plain scalar `text`; an ambiguous one stays text and says why.

    Words on which YAML 1.1 and 1.2 differ are never guessed: the caller reports them.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None, None
    if text in ("true", "True", "TRUE"):
        return True, None
    if text in ("false", "False", "FALSE"):
        return False, None
    if (ambiguity := _ambiguity(text)) is not None:
        return text, ambiguity
    if _INT.fullmatch(text):
        # Cut, a number beyond every bound stays beyond every bound, and costs no time.
        return int(text[:_MOST_DIGITS]), None
    if len(text) <= _MOST_DIGITS and _FLOAT.fullmatch(text):
        return float(text), None
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", "", 1)), None
    return text, None


def _ambiguity(text: str) -> Ambiguity | None:
    """Why YAML 1.1 and 1.2 read `text` differently; None when they agree."""
    if (truth := _OTHER_BOOLEANS.get(text.lower())) is not None:
        word = "true" if truth else "false"
        return Ambiguity(text, f"some YAML readers take it as {word}, others as text", word)
    if len(text) > _MOST_DIGITS or not text.strip("+-")[:1].isdigit():
        return None
    if _OCTAL.fullmatch(text):
        octal, decimal = int(text, 8), int(text, 10)
        if octal != decimal:
            return Ambiguity(
                text,
                f"with its leading zero it is {octal} to some YAML readers and {decimal} to others",
                str(decimal),
            )
    if _LEADING_ZERO.fullmatch(text):
        return Ambiguity(
            text,
            "with its leading zero it is a number to some YAML readers and text to others",
            str(int(text, 10)),
        )
    if _SEXAGESIMAL.fullmatch(text):
        return Ambiguity(
            text,
            "with its colon it is a number in base 60 to some YAML readers and text to others",
            "",
        )
    if _BASED.fullmatch(text):
        plain = _plain_based(text)
        return Ambiguity(text, "it is a number to some YAML readers and text to others", plain)
    if _UNDERSCORES.fullmatch(text):
        return Ambiguity(
            text,
            "with its underscore it is a number to some YAML readers and text to others",
            text.replace("_", ""),
        )
    return None


def _plain_based(text: str) -> str:
    """The decimal spelling of a hexadecimal, octal or binary word; "" for an odd one."""
    try:
        return str(int(text.replace("_", ""), 0))
    except ValueError:
        return ""
