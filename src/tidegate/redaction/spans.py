"""What was found, where, and what does the reader see instead?

Lives here: the words of a finding (kind, span, counts) and the refusal to pass it on. Does not
live here: how anything is found (detectors), which action applies (policy). No value that was
found is ever stored in these objects.
"""

from dataclasses import dataclass
from typing import Literal

Action = Literal["mask", "block", "report"]


class Counts(dict[str, int]):
    """How often each label was found, in first-seen order.

    `unscanned` counts the leaves that passed unread because they are base64 data: never in
    silence.
    """

    unscanned: int = 0


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


@dataclass(frozen=True, slots=True)
class Span:
    """One finding, as offsets in characters of everything fed and everything returned so far.

    `kind` is the placeholder word, `detector` the exact rule. With the action "report" the text
    between `start_out` and `end_out` is the original.
    """

    kind: str
    label: str
    start_in: int
    end_in: int
    start_out: int
    end_out: int
    detector: str


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
