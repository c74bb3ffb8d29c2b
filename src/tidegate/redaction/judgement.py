"""What becomes of a value that stands where no text can be put in its place?

Lives here: the judgement of object keys, of JSON numbers and of structural fields. None of them
passes in silence: a finding is counted, and a family whose action is "block" refuses. Does not
live here: texts (treatment), which fields are structural (chat_fields and its kin).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.redaction.spans import Numbers
    from tidegate.redaction.treatment import Treatment

LEAST_DIGITS = 9
"""Shorter numbers are no value of any kind, but for one that its field calls a secret."""


def judge_key(key: str, treatment: "Treatment") -> bool:
    """Count an object key in which something is found; it stays, because code asks for it.

    True if something was found. Raises BlockedContent.
    """
    policy = treatment.policy
    found = not policy.program.clean(key) and bool(policy.redact(key).spans)
    if found:
        treatment.counts.passes("key")
    return found


def judge_text(text: str, why: str, treatment: "Treatment") -> bool:
    """Count a text in which something is found; it stays for the reason `why`, never refused.

    True if something was found. Ids are random digits and letters, so now and then one looks
    like a value: a refusal would hit answers in which nothing is wrong.
    """
    policy = treatment.policy
    found = not policy.program.clean(text) and bool(policy.scan(text))
    if found:
        treatment.counts.passes(why)
    return found


def judge_number(
    literal: str,
    key: str,
    treatment: "Treatment",
    numbers: "Numbers | None" = None,
    *,
    inside_json: bool = False,
) -> str | None:
    """The text that is to stand, quoted, in place of the number `literal`; None if it stays.

    `key` is the name of the field, which may say what the digits are. `numbers` replaces the
    rule of the policy; `inside_json` is as for `Treatment.text`. Raises BlockedContent.
    """
    digits = _plain(literal)
    policy = treatment.policy
    if not policy.program.secret_key(key) and (
        len(digits) < LEAST_DIGITS or policy.program.clean(digits)
    ):
        return None
    lead = treatment.lead_of(key)
    found = policy.redact(lead + digits)
    if not found.spans or found.spans[-1].start_in < len(lead):
        return None
    rule = policy.numbers if numbers is None else numbers
    if found.text == lead + digits or rule == "count":
        treatment.counts.passes("number")
        return None
    if rule == "block":
        policy.refusing.redact(lead + digits)
    way = treatment.text(lead=lead, inside_json=inside_json)
    return way.feed(digits) + way.flush()


def judge_value(
    value: int | float, key: str, treatment: "Treatment", numbers: "Numbers | None" = None
) -> object:
    """Like `judge_number`, for a number that was read: itself, or the text in its place."""
    if isinstance(value, float) and not value.is_integer():
        return value
    text = judge_number(str(int(value)), key, treatment, numbers)
    return value if text is None else text


def _plain(literal: str) -> str:
    """The digits of a JSON number, also of one with an exponent; as it is for a fraction."""
    if literal.lstrip("-").isdigit():
        return literal
    try:
        value = float(literal)
    except ValueError:
        return literal
    return str(int(value)) if abs(value) < 1e30 and value.is_integer() else literal
