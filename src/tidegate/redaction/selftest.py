"""Does this detector obey the laws that streams rely on?

Lives here: texts made of a detector's own samples, the laws, and what breaks one. Does not live
here: reading samples or printing findings (cli). Pure and repeatable: the same detector gives the
same report.

The laws, for each text: it comes out the same whole, cut in two anywhere, and character by
character; the same each time; the same behind other text; masked text stays as it is; a sample is
found; no more is held than an answer may hold; no detector raises.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.redaction.folding import OPEN_MAX
from tidegate.redaction.hits import HOLD
from tidegate.redaction.policy import RedactionPolicy
from tidegate.redaction.stream import Redactor

# `{}` is a sample, `{-}` one without its last character, `{=}` one with an invisible character.
_AROUND = (
    *("{}", "{} ", " {}.", "a {} b", "({})", '"{}"', "{},{}", "{} {}", "x{}", "{}x", "1{}", "{}1"),
    *("{}\n{}", "\u4e2d{}\u4e2d", "_{}_", "{}-{}", "{-}", "{-} {}", "{-}{}", "{=} x", "\u00e9{}"),
)
_FAR = "Ordinary words, in one line or two. " * 16 + "\n"
_JOINED = "z" * (HOLD + 40) + "."
_DENSE = 80
# What the mistakes of somebody else's code raise.
BUGS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, NameError, RuntimeError),
    *(TypeError, ValueError),
)


@dataclass(frozen=True, slots=True)
class Broken:
    """A text for which a law does not hold; `cut` is the place at which it was cut, if any."""

    law: str
    text: str
    cut: int | None = None
    whole: str = ""
    other: str = ""


@dataclass(slots=True)
class Report:
    """What was tried, and the shortest text that breaks each law."""

    texts: int = 0
    splits: int = 0
    broken: list[Broken] = field(default_factory=list)

    def add(self, broken: Broken) -> None:
        """Keep it, unless a shorter text is known to break the same law."""
        for place, known in enumerate(self.broken):
            if known.law == broken.law:
                if len(broken.text) < len(known.text):
                    self.broken[place] = broken
                return
        self.broken.append(broken)


def examine(
    policy: RedactionPolicy, samples: Sequence[str], *, texts: Sequence[str] = ()
) -> Report:
    """Try every law with texts around each of `samples`, and with `texts` as they are.

    Every action of `policy` counts as a placeholder. Each of `samples` must be found.
    Costs some 20 ms for each sample, more for long ones.
    """
    masking = policy.with_actions(dict.fromkeys(policy.actions, "mask"))
    report = Report()
    for sample in samples:
        found = _whole(masking, sample, report)
        if found is not None and found.strip() == sample.strip():
            report.add(Broken("a sample is not found", sample))
    for text in (*_around(samples), *texts):
        report.texts += 1
        whole = _whole(masking, text, report)
        if whole is not None:
            _hold(masking, text, whole, report)
    return report


def _around(samples: Sequence[str]) -> Iterator[str]:
    for sample in samples:
        half = len(sample) // 2
        for pattern in _AROUND:
            yield (
                pattern.replace("{}", sample)
                .replace("{-}", sample[:-1])
                .replace("{=}", f"{sample[:half]}\u200b{sample[half:]}")
            )
        yield f"{_JOINED}{sample} end"


def _whole(policy: RedactionPolicy, text: str, report: Report) -> str | None:
    """The text as it leaves in one piece; None if a detector raises."""
    return _streamed(policy, [text], text, None, report)


def _hold(policy: RedactionPolicy, text: str, whole: str, report: Report) -> None:
    for cut in _cuts(text):
        report.splits += 1
        pieces = list(text) if cut is None else [text[:cut], text[cut:]]
        other = _streamed(policy, pieces, text, cut, report)
        if other is not None and other != whole:
            report.add(Broken("it depends on how the text is cut", text, cut, whole, other))
    for law, before in (
        ("it is not the same each time", ""),
        ("it depends on text far before it", _FAR),
    ):
        other = _whole(policy, before + text, report)
        if other is not None and other != before + whole:
            report.add(Broken(law, text, None, whole, other.removeprefix(before)))
    again = _whole(policy, whole, report)
    if again is not None and again != whole:
        report.add(Broken("masked text is masked again", text, None, whole, again))


def _cuts(text: str) -> Iterator[int | None]:
    """Every place, or in a long text every one near its end and some before; None: everywhere."""
    size = len(text)
    dense = max(1, size - _DENSE) if size > 2 * _DENSE else 1
    yield from range(1, dense, max(1, dense // 20))
    yield from range(dense, size)
    yield None


def _streamed(
    policy: RedactionPolicy, pieces: Sequence[str], text: str, cut: int | None, report: Report
) -> str | None:
    redactor = Redactor(policy, keep_spans=False)
    out = []
    try:
        for piece in pieces:
            out.append(redactor.feed(piece))
            if redactor.pending >= HOLD + OPEN_MAX:
                report.add(Broken("too much is held", text, cut))
        out.append(redactor.flush())
    except BUGS as error:
        report.add(Broken(f"it raises {type(error).__name__}", text, cut))
        return None
    return "".join(out)


__all__ = ["BUGS", "Broken", "Report", "examine"]
