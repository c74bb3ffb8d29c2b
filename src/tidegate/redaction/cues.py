"""Is this a name, an address or a date of birth, as the words around it say?

Lives here: rules of thumb, off unless asked for: a name behind "my name is", "Dear", "Mr" and the
like, a street with number and postcode, a date behind "born on". Does not live here: names known
by heart (denylist), language models.

They know capitalized names in Latin letters and a few phrases of English, German, French and
Spanish. A name without a cue is not found, and a cue in front of another capitalized word is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tidegate.redaction.hits import Anchors, AnyDetector, Hit, Verdict
from tidegate.redaction.pattern_detectors import Shape, SpanningCustomDetector
from tidegate.redaction.patterns import read_pattern
from tidegate.redaction.shapes import EDGE, prefix_regex, regex, widths
from tidegate.redaction.spans import Kind

NAME = Kind("NAME", "name")
ADDRESS = Kind("ADDRESS", "address")
BIRTH_DATE = Kind("BIRTH_DATE", "birth_date")
RANK = 110
"""Behind every detector that looks at the value itself."""

_CUE_MAX = 40
# Characters from rare to frequent; what is not among them is rarer still.
_COMMON = "jzq:=xkvbpygfwmucldrhsnioate "
# From what a cue and a pattern found, the part that is the value, or None.
Judge = Callable[[str], tuple[int, int] | None]


@dataclass(frozen=True, slots=True)
class Cue:
    """Words in front of a value. Lower-case ones are found in any case, others as they stand."""

    rule: str
    words: Sequence[str]
    value: str
    judge: Judge


class CuedValues:
    """Values that follow a cue. The cue itself stays."""

    rank = RANK

    def __init__(self, family: str, kind: Kind, *cues: Cue) -> None:
        self.family = family
        self.anchors: Anchors = tuple(_anchor(word) for cue in cues for word in cue.words)
        self._kind = kind
        self._cues = [_Compiled(cue) for cue in cues]

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`: a segment that ends in a cue is an opening."""
        return stop if stop > start and self._cue(text, stop) is not None else None

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        cue = self._cue(text, start)
        if cue is None:
            return Verdict.TEXT
        if not ended and cue.begins.fullmatch(text, start, end):
            return Verdict.WAIT
        found = cue.value.match(text, start, end)
        part = cue.judge(found[0]) if found else None
        if part is None:
            return Verdict.TEXT
        return Hit(start + part[0], start + part[1], self.family, cue.rule, self._kind)

    def _cue(self, text: str, stop: int) -> "_Compiled | None":
        before = text[max(0, stop - _CUE_MAX) : stop]
        lower = before.lower()
        for cue in self._cues:
            for word in cue.words:
                seen = lower if word.islower() else before
                if seen.endswith(word) and not before[: -len(word)][-1:].isalnum():
                    return cue
        return None


class _Compiled:
    __slots__ = ("begins", "judge", "rule", "value", "words")

    def __init__(self, cue: Cue) -> None:
        tree = read_pattern(cue.value)
        self.rule, self.words, self.judge = cue.rule, tuple(cue.words), cue.judge
        self.value = re.compile(f"{regex(tree)}{EDGE}", re.DOTALL)
        self.begins = re.compile(prefix_regex(tree), re.DOTALL)


def _anchor(word: str) -> tuple[str, str]:
    """The rarest character of the last segment of a cue, with the whole cue around it."""
    head = word.rstrip(" ")
    begin = max(head.rfind(" "), head[:-1].rfind('"'), head[:-1].rfind(")")) + 1
    plain = [at for at in range(begin, len(head)) if head[at].isascii()]
    place = min(plain, key=lambda at: _COMMON.find(head[at].lower()))
    spelled = _spelled if word.islower() else re.escape
    char = word[place]
    first = char + char.upper() if word.islower() and char.isalpha() else re.escape(char)
    return first, f"(?<={spelled(word[: place + 1])}){spelled(word[place + 1 :])}"


def _spelled(word: str) -> str:
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else re.escape(c) for c in word)


# ---- names ------------------------------------------------------------------------------------

_CAPITAL = "A-Z\u00c0-\u00d6\u00d8-\u00de"
_LETTER = f"{_CAPITAL}a-z\u00df-\u00f6\u00f8-\u00ff"
_WORD = rf"[{_CAPITAL}][{_LETTER}'\u2019-]{{1,24}}"
_PARTICLE = "(?:(?:van|von|de|der|den|del|di|da|dos|du|la|le|bin|ibn|al|el|ter|zu) )?"
_PART = rf"{_PARTICLE}{_PARTICLE}(?:{_WORD}|[A-Z]\.)"
_NAME = f"{_PART}(?: {_PART}(?: {_PART}(?: {_PART})?)?)?"

_NO_NAME = re.compile(
    "A|All|An|And|Any|As|At|Be|But|By|Can|Colleagues?|Community|Could|Customers?|Diary|Do|Editor"
    "|Everybody|Everyone|First|Folks|For|Friends?|From|God|Guests?|Have|He|Here|Hiring|How|I|If|In"
    "|Is|It|Ladies|Last|Let|Lord|Madam|Members?|My|No|None|Not|Null|Of|On|Or|Our|Please|Readers?"
    "|Recruiter|Santa|She|Sirs?|So|Sorry|Students?|Subscribers?|Support|Team|Thanks?|That|The|There"
    "|They|This|To|Unknown|Users?|Valued|We|What|When|Where|Who|Why|Will|With|Would|Yes|Your?"
    "|(?:Mr|Mrs|Ms|Miss|Dr|Prof|Herr|Frau|Mme)\\.?|Professor|Doctor"
)
_TITLES = ("Mr", "Mrs", "Ms", "Miss", "Dr", "Prof", "Herr", "Frau", "Mme")


def _name(least: int) -> Judge:
    """The words up to the first that no name holds, if there are `least` of them."""

    def judge(found: str) -> tuple[int, int] | None:
        start = len(found) - len(found.lstrip())
        words: list[str] = []
        for word in found[start:].split(" "):
            if _NO_NAME.fullmatch(word):
                break
            words.append(word)
        while words and words[-1].islower():
            words.pop()
        if len(words) < least:
            return None
        return start, start + len(" ".join(words))

    return judge


def names() -> CuedValues:
    """Names behind phrases, salutations, titles and the labels of forms."""
    introductions = ("my name is ", "my name's ", "his name is ", "her name is ", "i am called ")
    abroad = ("mein name ist ", "ich hei\u00dfe ", "je m'appelle ", "me llamo ", "mi nombre es ")
    titles = [f"{title}{dot}" for title in _TITLES for dot in (" ", ". ")]
    labels = ("full name:", "first name:", "last name:", "surname:", "patient name:")
    weak = ("patient:", "attn:", "attention:", "regards,", "sincerely,", "gr\u00fc\u00dfen,")
    return CuedValues(
        "names",
        NAME,
        Cue("name_introduction", introductions + abroad, f" ?{_NAME}", _name(1)),
        Cue(
            "name_salutation",
            ("Dear ", "Liebe ", "Lieber ", "Ch\u00e8re ", "Cher "),
            _NAME,
            _name(1),
        ),
        Cue("name_title", titles, _NAME, _name(1)),
        Cue("name_label", labels, rf"[ \t]{{0,4}}{_NAME}", _name(1)),
        Cue("name_label", weak, rf"\s{{0,4}}{_NAME}", _name(2)),
    )


# ---- dates of birth ---------------------------------------------------------------------------

_MONTH = (
    "(?:[Jj]an(?:uary|uar)?|[Ff]eb(?:ruary|ruar)?|[Mm]ar(?:ch)?|[Mm]\u00e4rz|[Aa]pr(?:il)?|[Mm]ay"
    "|[Mm]ai|[Jj]un[ei]?|[Jj]ul[yi]?|[Aa]ug(?:ust)?|[Ss]ept?(?:ember)?|[Oo][ck]t(?:ober)?"
    r"|[Nn]ov(?:ember)?|[Dd]e[cz](?:ember)?)\.?"
)
_DATE = (
    r"(?:\d{1,2}[./-]\d{1,2}[./-]\d{2}(?:\d{2})?|\d{4}[./-]\d{1,2}[./-]\d{1,2}"
    rf"|(?:the )?\d{{1,2}}(?:st|nd|rd|th|\.)?[ -](?:of )?{_MONTH},?[ -]\d{{2}}(?:\d{{2}})?"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}})"
)


def _date(found: str) -> tuple[int, int]:
    return len(found) - len(found.lstrip(" \t:\"'")), len(found)


def birth_dates() -> CuedValues:
    """Dates behind "born on", "date of birth" and the like."""
    labels = ("dob", "d.o.b.", "date of birth", "birth date", "birthdate", "birthday")
    fields = ("date_of_birth", "birth_date", "birthdate", "birthday", "dob")
    phrases = ("born ", "born on ", "birthday is ", "date of birth is ", "geboren am ")
    words = [f"{label}{end}" for label in labels for end in (":", " ")]
    words += [
        f"{name}{end}" for name in fields for end in (":", "=", '":') if name + end not in words
    ]
    words += ["geburtsdatum:", "fecha de nacimiento:", "n\u00e9 le ", "n\u00e9e le "]
    return CuedValues(
        "birth_dates",
        BIRTH_DATE,
        Cue("birth_date", (*words, *phrases), rf"[ \t:]{{0,2}}[\"']?{_DATE}", _date),
    )


# ---- addresses --------------------------------------------------------------------------------

_NUMBER = r"\d{1,5}[A-Za-z]?(?:[/-]\d{1,4}[A-Za-z]?)?"
_PLACE = r"[A-Z][A-Za-z'.-]{0,20}"
_PLACES = rf"{_PLACE}(?: {_PLACE}(?: {_PLACE})?)?"
_SUFFIX = (
    "(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Square|Sq"
    r"|Terrace|Ter|Circle|Cir|Highway|Hwy|Parkway|Pkwy|Way|Close|Crescent|Grove|Mews|Row)\.?"
)
_UNIT = (
    r"(?:,? (?:Apartment|Apt|Suite|Ste|Unit|Floor|Flat|Room)\.? #?[A-Za-z0-9-]{1,6}"
    "|,? #[A-Za-z0-9-]{1,6})?"
)
_STREET = rf"{_NUMBER} (?:{_PLACES}|\d{{1,3}}(?:st|nd|rd|th)) {_SUFFIX}(?: [NS]?[EW]| [NS])?{_UNIT}"
_POSTCODE = (
    r"(?:[A-Z]{2} \d{5}(?:-\d{4})?|[A-Z][a-z]{3,13} \d{5}(?:-\d{4})?"
    r"|[A-Z]{1,2}\d[A-Z0-9]? ?\d[A-Z]{2}|[A-Z]{2} [A-Z]\d[A-Z] ?\d[A-Z]\d|[A-Z]{2,3} \d{4})"
)
_REST = rf",?\s{_PLACES},?\s{_POSTCODE}"
_FRENCH = (
    r"\d{1,4}(?: ?(?:bis|ter))?,? (?:rue|avenue|boulevard|place|quai|chemin|all\u00e9e|impasse)"
    rf" [{_LETTER}' -]{{2,40}},?\s\d{{5}} {_WORD}"
)
_GERMAN_WORD = f"[{_CAPITAL}][{_LETTER}.-]{{1,24}}"
_GERMAN = (
    rf"[{_CAPITAL}][{_LETTER}.-]{{0,24}}"
    r"(?:tra(?:\u00df|ss)e|tr\.|weg|gasse|latz|llee|ing|amm|fer|straat|laan|plein) \d{1,4} ?[a-z]?"
    rf",?\s(?:[A-Z]{{1,2}}-)?\d{{4,5}}(?: [A-Z]{{2}})? {_GERMAN_WORD}"
)


def _anything(found: str) -> tuple[int, int]:
    return len(found) - len(found.lstrip()), len(found)


def _addresses() -> tuple[AnyDetector, ...]:
    cues = ("address:", "address is ", "live at ", "lives at ", "living at ", "resides at ")
    more = ("ship to ", "ship to:", "deliver to ", "located at ")
    return (
        CuedValues(
            "addresses",
            ADDRESS,
            Cue("address_cued", cues + more, rf"\s{{0,4}}{_STREET}(?:{_REST})?", _anything),
        ),
        _address("address", f"{_STREET}{_REST}"),
        _address("address_french", _FRENCH),
        _address("address_german", _GERMAN),
    )


def _address(rule: str, pattern: str) -> AnyDetector:
    tree = read_pattern(pattern)
    shape = Shape(tree, *widths(tree))
    return SpanningCustomDetector(ADDRESS, shape, rank=RANK, family="addresses", rule=rule)


CUES: Mapping[str, Callable[[], Sequence[AnyDetector]]] = MappingProxyType(
    {
        "names": lambda: (names(),),
        "addresses": _addresses,
        "birth_dates": lambda: (birth_dates(),),
    }
)
"""The detectors of each family of rules of thumb."""
