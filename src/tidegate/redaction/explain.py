"""Which detector takes what in this text, and why are other parts left alone?

Lives here: explanations of a whole text under one policy, for people who ask. Does not live here:
the sentences (detectors/reasons, near_numbers, near_texts), how they are printed (cli).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tidegate.redaction.detectors import near_numbers, near_texts
from tidegate.redaction.detectors.near_numbers import Near
from tidegate.redaction.detectors.reasons import recognized
from tidegate.redaction.folding import fold
from tidegate.redaction.held import HeldText
from tidegate.redaction.policy import RedactionPolicy
from tidegate.redaction.spans import Span

NEAR: Mapping[str, Callable[[str], Iterator[Near]]] = MappingProxyType(
    {
        "authorization": near_texts.near_authorizations,
        "card": near_numbers.near_cards,
        "email": near_texts.near_emails,
        "iban": near_numbers.near_ibans,
        "ip": near_numbers.near_addresses,
        "jwt": near_texts.near_tokens,
        "key": near_texts.near_keys,
        "keyword": near_texts.near_keyword_values,
        "mac": near_numbers.near_macs,
        "national_id": near_numbers.near_national_ids,
        "passport": near_numbers.near_passports,
        "phone": near_numbers.near_phones,
        "private_key": near_texts.near_private_keys,
        "ssn": near_numbers.near_ssns,
        "url_credentials": near_texts.near_url_credentials,
        "wallet": near_numbers.near_wallets,
    }
)
"""Families that say why something is none of theirs, and how."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One place of the text: characters `start` to `end`.

    `outcome` is the action that applies ("mask", "partial", "hash", "block", "report") or "kept".
    For what is kept `rule` is empty unless a detector would take it. `reason` is one sentence
    without the value.
    """

    start: int
    end: int
    family: str
    rule: str
    outcome: str
    reason: str


def explain(policy: RedactionPolicy, text: str) -> list[Explanation]:
    """Everything that `policy` takes in `text`, then what it nearly takes, by place.

    Near misses are given for the detectors that are on; values that are allowed, and values of
    detectors that are off, are given too. Cost: several times that of redaction, and up to
    quadratic in a chain of digits.
    """
    taken = policy.scan(text)
    found = [
        _explanation(text, span, policy.actions[span.family], _why(text, span)) for span in taken
    ]
    covered = [(span.start_in, span.end_in) for span in taken]
    passed = [*_passed(policy, text, covered)]
    covered += [(each.start, each.end) for each in passed if each.family in policy.actions]
    near = [*_near(policy, text, covered)]
    return sorted([*found, *passed, *near], key=lambda each: (each.start, each.end))


def _why(text: str, span: Span) -> str:
    return recognized(span.family, span.detector, fold(text[span.start_in : span.end_in]))


def _explanation(text: str, span: Span, outcome: str, reason: str) -> Explanation:
    return Explanation(span.start_in, span.end_in, span.family, span.detector, outcome, reason)


def _overlaps(covered: list[tuple[int, int]], start: int, end: int) -> bool:
    return any(low < end and start < high for low, high in covered)


def _passed(
    policy: RedactionPolicy, text: str, covered: list[tuple[int, int]]
) -> Iterator[Explanation]:
    """What the policy allows, and what detectors that are off would take."""
    for span in policy.unbound.scan(text):
        if _overlaps(covered, span.start_in, span.end_in):
            continue
        reason = f"allowed by the policy; otherwise: {_why(text, span)}"
        if span.family not in policy.actions:
            reason = f"the detector {span.family} is off; it would see: {_why(text, span)}"
        yield _explanation(text, span, "kept", reason)


def _near(
    policy: RedactionPolicy, text: str, covered: list[tuple[int, int]]
) -> Iterator[Explanation]:
    held = HeldText()
    held.append(text)
    seen = set()
    for family, near in _finders(policy):
        for start, end, reason in near(held.text):
            place = held.span(start), held.span(end)
            known = (*place, reason)
            if known in seen or _overlaps(covered, *place):
                continue
            seen.add(known)
            yield Explanation(*place, family, "", "kept", reason)


def _finders(policy: RedactionPolicy) -> Iterator[tuple[str, Callable[[str], Iterator[Near]]]]:
    for family, near in NEAR.items():
        if family in policy.actions:
            yield family, near
    for detector in policy.extra:
        near_of_it = getattr(detector, "near", None)
        if near_of_it is not None:
            yield detector.family, near_of_it
