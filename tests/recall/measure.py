"""How is recall counted, and how precision?"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.recall.samples import Sample
from tidegate.redaction import RedactionPolicy

KINDS = {
    "CREDIT_CARD": "CARD",
    "EMAIL_ADDRESS": "EMAIL",
    "IBAN_CODE": "IBAN",
    "IP_ADDRESS": "IP",
    "PHONE_NUMBER": "PHONE",
    "US_SSN": "SSN",
}
"""The labels of the files that a detector here answers for, and the word of its placeholder."""
POLICY = RedactionPolicy.preset("strict").with_actions({"keyword": None, "authorization": None})
"""Everything but the values behind words such as "password", which nobody has labeled."""


@dataclass
class Figures:
    """One kind: labeled values, how many of them are masked whole, what was not, and the hits.

    A hit is right if it overlaps a label of its own kind.
    """

    labeled: int = 0
    masked: int = 0
    missed: list[str] = field(default_factory=list)
    hits: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """Masked out of labeled, from 0 to 1."""
        return self.masked / self.labeled if self.labeled else 1.0

    @property
    def precision(self) -> float:
        """Right out of all hits, from 0 to 1."""
        return self.right / self.hits if self.hits else 1.0


@dataclass
class Report:
    """Figures by placeholder word, and the hits in texts without any label."""

    kinds: dict[str, Figures]
    unlabeled_texts: int = 0
    hits_in_unlabeled: list[str] = field(default_factory=list)


def measure(samples: Iterable[Sample], policy: RedactionPolicy = POLICY) -> Report:
    """The figures of `policy` over labeled texts."""
    report = Report({word: Figures() for word in KINDS.values()})
    for sample in samples:
        spans = policy.scan(sample.text)
        if not sample.labels:
            report.unlabeled_texts += 1
            report.hits_in_unlabeled += [span.kind for span in spans]
        for label, start, end in sample.labels:
            if label not in KINDS:
                continue
            figures = report.kinds[KINDS[label]]
            figures.labeled += 1
            if any(span.start_in <= start and end <= span.end_in for span in spans):
                figures.masked += 1
            else:
                figures.missed.append(sample.text[start:end])
        for span in spans:
            figures = report.kinds.setdefault(span.kind, Figures())
            figures.hits += 1
            if any(
                KINDS.get(label) == span.kind and start < span.end_in and span.start_in < end
                for label, start, end in sample.labels
            ):
                figures.right += 1
            else:
                figures.wrong.append(sample.text[span.start_in : span.end_in])
    return report
