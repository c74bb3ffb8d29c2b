"""What may leave of a message of MCP, of its result, its error or its arguments?

Lives here: what of a message passes because the other side compares it or sends it back, what a
schema has to fit, and the choice between a glance and a walk. Does not live here: the glance
(nothing), the walk and its leaves (leaves).
"""

from typing import TYPE_CHECKING

from tidegate.redaction.leaves import Holder, LeafRedactor, Path, rewrite
from tidegate.redaction.nothing import holds_nothing
from tidegate.redaction.spans import Counts, Numbers
from tidegate.redaction.treatment import Treatment

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

_PLACES = frozenset(
    {
        ("id",),
        ("params", "_meta", "progressToken"),
        ("params", "progressToken"),
        ("result", "nextCursor"),
    }
)
"""Members of a JSON-RPC message that the other side sends back or compares."""


class _Message:
    """The leaves of a JSON-RPC message, or of its result, error, params or arguments."""

    def __init__(self, treatment: Treatment, *, is_envelope: bool) -> None:
        self._leaves = LeafRedactor(treatment)
        # It has to fit a schema, which a text in place of a number does not.
        numbers: Numbers = "count" if treatment.policy.numbers == "count" else "block"
        self._structured = LeafRedactor(treatment, numbers=numbers)
        self._places = _PLACES if is_envelope else frozenset()
        self.key = self._leaves.key
        self.members = self._leaves.members

    def text(self, text: str, path: Path, holder: Holder) -> str:
        """See `Visitor`."""
        if self._places and path in self._places:
            return text
        return self._leaves.text(text, path, holder)

    def number(self, number: int | float, path: Path) -> object:
        """See `Visitor`."""
        if self._places and path in self._places:
            return number
        leaves = self._structured if "structuredContent" in path[:2] else self._leaves
        return leaves.number(number, path)


def redact_tree(value: object, policy: "RedactionPolicy | Treatment") -> tuple[object, Counts]:
    """Every string leaf of a JSON tree redacted; the same object when nothing changed.

    Made for MCP: a message, or its result, error, params or arguments. Of a message its `id`,
    progress token and cursor pass, because the other side compares them or sends them back. So
    does base64 data, which is counted. A number whose digits are a value becomes a placeholder,
    if the policy says so; in `structuredContent`, which has to fit a schema, it refuses the
    message instead. Raises BlockedContent, and ValueError for a tree that is too deep.
    """
    if not isinstance(policy, Treatment) and holds_nothing(value, policy.program):
        return value, Counts()
    treatment = Treatment.of(policy)
    is_envelope = isinstance(value, dict) and "jsonrpc" in value
    return rewrite(value, _Message(treatment, is_envelope=is_envelope)), treatment.counts
