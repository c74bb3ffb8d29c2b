"""How is one family of detectors asked about one text?"""

from functools import cache

from tests.unit.redaction.laws import streamed
from tidegate.redaction import RedactionPolicy
from tidegate.testing.splits import every_split


@cache
def only(*families: str) -> RedactionPolicy:
    """A policy of these families."""
    return RedactionPolicy(dict.fromkeys(families, "mask"))


def check(policy: RedactionPolicy, text: str, shown: str) -> None:
    """`text` becomes `shown`, whole and in every split in two."""
    whole = policy.redact(text)
    assert whole.text == shown
    for pieces in every_split(text, three_way_max=0):
        assert streamed(policy, pieces) == (shown, whole.spans)
