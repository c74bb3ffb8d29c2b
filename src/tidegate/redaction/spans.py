"""What was found, where, and what does the reader see instead?

Lives here: the words of a finding (kind, span, counts) and the refusal to pass it on. Does not
live here: how anything is found (detectors), which action applies (policy). No value that was
found is ever stored in these objects.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Action = Literal["mask", "partial", "hash", "block", "report"]
"""What happens to a value: a placeholder; a placeholder with the value's last four letters or
digits (`[REDACTED_CARD_1111]`) if it has at least nine, all ASCII; a placeholder with a keyed
digest of eight hexadecimal digits, the same for the same value; the text is refused; nothing but
a count. A value whose end was not in sight when it became certain gets the plain placeholder."""
ACTIONS: tuple[Action, ...] = ("mask", "partial", "hash", "block", "report")
Numbers = Literal["mask", "block", "count"]
"""A JSON number in which something is found: a quoted placeholder, a refusal, or passed and
counted. Only families whose action replaces values are asked; "block" always refuses."""

# Fewer than four digits: else an account number or a passport could pass for a word.
_WORD = r"(?!(?:[A-Z]*[0-9]){4})[A-Z][A-Z0-9]{0,15}"
PLACEHOLDER = re.compile(
    rf"\[(?:REDACTED(?:_{_WORD}){{1,4}}(?:_(?:[0-9A-Za-z]{{4}}|[0-9a-f]{{8}}))?"
    rf"|(?:{_WORD}_){{1,4}}[bcdfghjkmnpqrstvwxyz]{{14}})\]"
)
"""What we write in place of a value, so that it is not found again. No word in it is long enough
to hide a key, no number long enough to be one."""


class Counts(dict[str, int]):
    """How often each label was found, in first-seen order.

    `unscanned` counts what passed as it was although nobody read it, or although something was
    found in it: never in silence. `passed` says why: `base64`, `key` (of an object), `number`,
    `structural` (a field that steers a client), `sealed` (only the upstream can read it). `unknown`
    counts events of a kind that is not known, whose strings were redacted one by one. `shown` says
    how many of each label left as they were, because they were only to be reported.
    """

    __slots__ = ("passed", "shown", "unknown", "unscanned")

    def __init__(self, found: Mapping[str, int] | None = None, **labels: int) -> None:
        if found or labels:  # every document gets one, and most hold nothing
            self.update(found or {}, **labels)
        self.unknown = self.unscanned = 0
        self.passed: dict[str, int] = {}
        self.shown: dict[str, int] = {}

    @property
    def hidden(self) -> dict[str, int]:
        """How many of each label nobody sees, in first-seen order."""
        rest = {label: count - self.shown.get(label, 0) for label, count in self.items()}
        return {label: count for label, count in rest.items() if count}

    def found(self, label: str, *, shown: bool = False) -> None:
        """One more."""
        self[label] = self.get(label, 0) + 1
        if shown:
            self.shown[label] = self.shown.get(label, 0) + 1

    def passes(self, why: str) -> None:
        """One more thing passes as it is."""
        self.unscanned += 1
        self.passed[why] = self.passed.get(why, 0) + 1

    def add(self, other: "Counts") -> None:
        """Take over what another document counted."""
        if not other and not other.unscanned and not other.unknown:
            return
        for label, count in other.items():
            self[label] = self.get(label, 0) + count
        for label, count in other.shown.items():
            self.shown[label] = self.shown.get(label, 0) + count
        for why, count in other.passed.items():
            self.passed[why] = self.passed.get(why, 0) + count
        self.unscanned += other.unscanned
        self.unknown += other.unknown


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of findings: `word` stands in the placeholder, `label` in counts and records."""

    word: str
    label: str

    @property
    def placeholder(self) -> str:
        """The text that replaces a value, for example `[REDACTED_CARD]`."""
        return f"[REDACTED_{self.word}]"


EMAIL = Kind("EMAIL", "email")
SSN = Kind("SSN", "ssn")
CARD = Kind("CARD", "credit_card")
IBAN = Kind("IBAN", "iban")
SECRET = Kind("SECRET", "api_key")
PHONE = Kind("PHONE", "phone")
IP = Kind("IP", "ip_address")
MAC = Kind("MAC", "mac_address")
NATIONAL_ID = Kind("NATIONAL_ID", "national_id")
PASSPORT = Kind("PASSPORT", "passport")
WALLET = Kind("WALLET", "wallet")


@dataclass(frozen=True, slots=True)
class Span:
    """One finding, as offsets in characters of everything fed and everything returned so far.

    `kind` is the placeholder word, `detector` the exact rule, `family` the name that a
    configuration uses. With the action "report" the text between `start_out` and `end_out` is the
    original.
    """

    kind: str
    label: str
    start_in: int
    end_in: int
    start_out: int
    end_out: int
    detector: str
    family: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Redacted:
    """A whole text after redaction, with its findings in order."""

    text: str
    spans: tuple[Span, ...]


class BlockedContent(Exception):
    """A detector whose action is "block" found something; `kind` is the detector family."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class TooManyChannels(Exception):
    """One response opened more text channels than may hold text at the same time."""


class UpstreamAtFault(ValueError):
    """An event says something that no client could read in one way only. The words are ours."""
