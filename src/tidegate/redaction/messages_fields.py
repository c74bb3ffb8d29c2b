"""Which fields of the Anthropic Messages API are text, structure or input of a tool?

Lives here: the names, what happens to thinking, and the redaction of a request and of a whole
message, where every field is complete. Does not live here: streams (messages_stream). Anything
that is not named is text.

A thinking block carries a signature over its text, and the upstream refuses a block whose text
and signature do not fit. So a block whose text had to be changed loses its signature, and a block
without one is left out of the next request.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from tidegate.redaction.fields import Names, WholeFields
from tidegate.redaction.leaves import Holder, Path, rewrite
from tidegate.redaction.spans import Counts
from tidegate.redaction.treatment import ToolArguments, Treatment

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

Thinking = Literal["mask", "drop", "pass"]
"""What happens to thinking blocks in an answer: "mask": redacted, and unsigned if that changed
them; "drop": left out; "pass": as they are, with their findings counted."""

NAMES = Names(
    ids=frozenset({"file_id", "id", "model", "request_id", "tool_use_id"}),
    words=frozenset(
        {
            "display",
            "effort",
            "error_code",
            "media_type",
            "object",
            "role",
            "service_tier",
            "stop_reason",
            "ttl",
            "type",
        }
    ),
    clocks=frozenset({"created_at", "expires_at", "index"}),
    sealed=frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout", "signature"}),
    named_in=frozenset({"tool_choice", "tools"}),
    named_types=frozenset({"custom", "mcp_tool_use", "server_tool_use", "tool_use"}),
    free=frozenset({"input", "metadata"}),
    inputs=frozenset({"input"}),
)
_THOUGHTS = frozenset({"redacted_thinking", "thinking"})


class MessageFields:
    """The leaves of a message, a request or an event in which every field is complete."""

    def __init__(self, treatment: Treatment, *, thinking: Thinking = "mask") -> None:
        self._thoughts = treatment_of_thinking(treatment, thinking)
        self._fields = WholeFields(treatment, NAMES)
        self.number = self._fields.number
        self.key = self._fields.key
        self.members = self._fields.members

    def text(self, text: str, path: Path, holder: Holder) -> str:
        """See `Visitor`."""
        if path[-1:] == ("thinking",) and is_thought(holder):
            return self._thoughts.whole(text, "thinking")
        return self._fields.text(text, path, holder)


def treatment_of_thinking(treatment: Treatment, thinking: Thinking) -> Treatment:
    """How the text of a thinking block is treated."""
    if thinking == "pass":
        return Treatment(treatment.policy.observing(), counts=treatment.counts)
    return treatment


def redact_messages_request(
    body: dict[str, object], policy: "RedactionPolicy | Treatment"
) -> tuple[dict[str, object], Counts]:
    """A request with every text in it redacted; the same object when nothing changed.

    Covers messages (string or blocks), system, inputs and results of tools, documents,
    definitions of tools, metadata, and any field that is not known. Base64 data and encrypted
    thinking pass and are counted. Thinking blocks without a signature, or that had to be
    changed, are left out. Raises BlockedContent.
    """
    treatment = Treatment.of(policy)
    shown = rewrite(body, MessageFields(treatment))
    new = shown if isinstance(shown, dict) else body
    messages, masked = body.get("messages"), new.get("messages")
    if isinstance(messages, list) and isinstance(masked, list):
        pairs = zip(messages, masked, strict=True)
        kept = [_with_content(one, shown, _signed) for one, shown in pairs]
        if any(one is not other for one, other in zip(kept, masked, strict=True)):
            new = {**new, "messages": kept}
    return new, treatment.counts


def redact_message(
    body: dict[str, object],
    policy: "RedactionPolicy | Treatment",
    *,
    thinking: Thinking = "mask",
    tool_arguments: ToolArguments = True,
) -> tuple[dict[str, object], Counts]:
    """A whole answer redacted, every block; the same object when nothing changed.

    The text of each block equals what a stream of it would show. Raises BlockedContent.
    """
    treatment = Treatment.of(policy, tool_arguments=tool_arguments)
    new = rewrite(body, MessageFields(treatment, thinking=thinking))
    new = _with_content(body, new, _left_out if thinking == "drop" else _unsigned)
    return (new if isinstance(new, dict) else body), treatment.counts


def is_thought(block: object) -> bool:
    """A block of thinking, in plain words or encrypted."""
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and kind in _THOUGHTS


def _with_content(original: object, masked: object, judge: Callable[[Any, Any], object]) -> object:
    """`masked` with what `judge` makes of each thinking block and of its redacted form."""
    if not isinstance(original, dict) or not isinstance(masked, dict):
        return masked
    blocks, shown = original.get("content"), masked.get("content")
    if not isinstance(blocks, list) or not isinstance(shown, list):
        return masked
    pairs = [
        (judge(block, other) if is_thought(block) else other, other)
        for block, other in zip(blocks, shown, strict=True)
    ]
    if all(judged is other for judged, other in pairs):
        return masked
    return {**masked, "content": [judged for judged, _ in pairs if judged is not None]}


def _is_changed(block: dict[str, object], masked: dict[str, object]) -> bool:
    return block.get("thinking") != masked.get("thinking")


def _left_out(block: dict[str, object], masked: dict[str, object]) -> object:
    del block, masked
    return None


def _unsigned(block: dict[str, object], masked: dict[str, object]) -> object:
    if _is_changed(block, masked) and "signature" in block:
        return {**masked, "signature": ""}
    return masked


def _signed(block: dict[str, object], masked: dict[str, object]) -> object:
    if block.get("type") == "thinking" and (
        _is_changed(block, masked) or not block.get("signature")
    ):
        return None
    return masked
