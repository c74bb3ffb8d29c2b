"""Which fields of an OpenAI chat message are text, which are structure, which are arguments?

Lives here: the lists, and the redaction of a request and of a whole answer, where every field is
complete. Does not live here: streams (chat_stream). Anything not in a list is redacted as text.
"""

from typing import TYPE_CHECKING, Literal

from tidegate.redaction.arguments import ArgumentsRedactor
from tidegate.redaction.leaves import Holder, LeafRedactor, Path, rewrite
from tidegate.redaction.spans import BlockedContent, Counts
from tidegate.redaction.treatment import ToolArguments, Treatment

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

Logprobs = Literal["drop", "refuse"]

STRUCTURAL = frozenset(
    {
        "call_id",
        "created",
        "detail",
        "encoding_format",
        "finish_reason",
        "id",
        "index",
        "model",
        "native_finish_reason",
        "object",
        "obfuscation",
        "provider",
        "reasoning_effort",
        "response_id",
        "role",
        "service_tier",
        "signature",
        "system_fingerprint",
        "tool_call_id",
        "type",
        "verbosity",
    }
)
"""Names of fields whose short strings steer a client; they pass unread."""
STRUCTURAL_MAX = 256
"""A longer value under such a name is text like any other."""

STREAMED_TEXT = frozenset(
    {"content", "reasoning", "reasoning_content", "refusal", "text", "thinking", "transcript"}
)
"""Names of fields inside a delta whose text goes on in later events."""

STREAMED_ROOTS = frozenset(
    {
        "audio",
        "content",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "refusal",
        "thinking",
        "thinking_blocks",
    }
)
"""Members of a delta under which such fields are looked for; elsewhere a text is whole."""

FINISH_REASONS = frozenset(
    {
        "abort",
        "aborted",
        "cancelled",
        "complete",
        "completed",
        "content_filter",
        "end",
        "end_turn",
        "eos",
        "eos_token",
        "error",
        "function_call",
        "incomplete",
        "insufficient_system_resource",
        "length",
        "malformed_function_call",
        "max_output_tokens",
        "max_tokens",
        "model_length",
        "network_error",
        "pause_turn",
        "recitation",
        "refusal",
        "repetition",
        "safety",
        "sensitive",
        "stop",
        "stop_sequence",
        "timeout",
        "tool_call",
        "tool_calls",
        "tool_use",
    }
)
"""What OpenAI and the servers that speak its dialect say when a choice has ended.

Any other value ends nothing: an upstream that sends one with every event must not be able to
make held text leave early.
"""

_NAMED = frozenset({"function", "function_call", "custom", "tool_choice"})
_CALLS = frozenset({"function", "function_call"})


def is_structural(path: Path, text: str) -> bool:
    """The leaf at `path` steers a client and is no text."""
    if len(text) > STRUCTURAL_MAX or not path:
        return False
    if path[-1] in STRUCTURAL:
        return True
    # The name of a function is an identifier; the name of a message's author is not.
    return path[-1] == "name" and len(path) > 1 and path[-2] in _NAMED


def is_arguments(path: Path) -> bool:
    """The leaf at `path` is JSON text that a function is called with."""
    return path[-1:] == ("arguments",) and len(path) > 1 and path[-2] in _CALLS


def is_streamed(path: Path) -> bool:
    """The leaf at `path` of a delta is a piece of a text that goes on in later events."""
    if not path:  # the whole of `text`, which a choice may carry in place of a delta
        return True
    if path[-1] == "input":
        return path[-2:-1] == ("custom",)
    return path[-1] in STREAMED_TEXT and path[0] in STREAMED_ROOTS


class WholeFields:
    """Redacts the leaves of a chat tree in which every field is complete."""

    def __init__(self, treatment: Treatment) -> None:
        self._treatment = treatment
        self._leaves = LeafRedactor(treatment)

    def visit(self, text: str, path: Path, holder: Holder) -> str:
        """For `rewrite`. Raises BlockedContent."""
        if is_structural(path, text):
            return text
        if not is_arguments(path):
            return self._leaves.visit(text, path, holder)
        treatment = self._treatment.for_arguments
        if treatment is None:
            return text
        redactor = ArgumentsRedactor(treatment)
        return redactor.feed(text) + redactor.flush()


def redact_chat_request(
    body: dict[str, object], policy: "RedactionPolicy | Treatment"
) -> tuple[dict[str, object], Counts]:
    """A request with every text in it redacted; the same object when nothing changed.

    Covers messages (string or parts), tool results, arguments of earlier calls, descriptions in
    tool definitions, metadata, user, and any field this gateway does not know. Base64 data
    passes. Raises BlockedContent.
    """
    treatment = Treatment.of(policy)
    new = rewrite(body, WholeFields(treatment).visit)
    return (new if isinstance(new, dict) else body), treatment.counts


def redact_chat_completion(
    body: dict[str, object],
    policy: "RedactionPolicy | Treatment",
    *,
    logprobs: Logprobs = "drop",
    tool_arguments: ToolArguments = True,
) -> tuple[dict[str, object], Counts]:
    """A whole answer redacted, every choice; the same object when nothing changed.

    The text of each field equals what a stream of it would show. Raises BlockedContent, also for
    log probabilities when they are to be refused.
    """
    treatment = Treatment.of(policy, tool_arguments=tool_arguments)
    choices = body.get("choices")
    if isinstance(choices, list):
        bare = [
            without_logprobs(choice, logprobs) if isinstance(choice, dict) else choice
            for choice in choices
        ]
        if any(new is not old for new, old in zip(bare, choices, strict=True)):
            body = {**body, "choices": bare}
    new = rewrite(body, WholeFields(treatment).visit)
    return (new if isinstance(new, dict) else body), treatment.counts


def without_logprobs(choice: dict[str, object], mode: Logprobs) -> dict[str, object]:
    """`choice` without log probabilities, which spell the text out token by token."""
    if choice.get("logprobs") is None:
        return choice
    if mode == "refuse":
        raise BlockedContent("logprobs")
    return {**choice, "logprobs": None}
