"""Which fields of an OpenAI chat message are text, which are structure, which are arguments?

Lives here: the lists, and the redaction of a request and of a whole answer, where every field is
complete. Does not live here: streams (chat_stream). Anything not in a list is redacted as text.
"""

from typing import TYPE_CHECKING, Literal

from tidegate.redaction.fields import Names, WholeFields
from tidegate.redaction.leaves import Path, rewrite
from tidegate.redaction.spans import BlockedContent, Counts
from tidegate.redaction.treatment import ToolArguments, Treatment

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

Logprobs = Literal["drop", "refuse"]

Audio = Literal["drop", "refuse", "pass"]
"""What happens to the bytes of a spoken answer, which nobody can redact."""

NAMES = Names(
    ids=frozenset(
        {
            "call_id",
            "id",
            "model",
            "previous_response_id",
            "provider",
            "response_id",
            "system_fingerprint",
            "tool_call_id",
        }
    ),
    words=frozenset(
        {
            "detail",
            "encoding_format",
            "finish_reason",
            "native_finish_reason",
            "object",
            "reasoning_effort",
            "role",
            "service_tier",
            "type",
            "verbosity",
        }
    ),
    clocks=frozenset({"created", "created_at", "expires_at", "index", "seed"}),
    sealed=frozenset({"encrypted_content", "signature"}),
    # The name of a function is an identifier; the name of a message's author is not.
    named_in=frozenset({"function", "function_call", "custom", "tool_choice"}),
    called_in=frozenset({"function", "function_call"}),
)

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


def is_streamed(path: Path) -> bool:
    """The leaf at `path` of a delta is a piece of a text that goes on in later events.

    So is every string that stands in the delta itself: whoever adds deltas up joins them, also
    those of a field that nobody has heard of.
    """
    if len(path) <= 1:  # no step: `text`, which a choice may carry in place of a delta
        return True
    if path[-1] == "input":
        return path[-2:-1] == ("custom",)
    return path[-1] in STREAMED_TEXT and path[0] in STREAMED_ROOTS


def redact_chat_request(
    body: dict[str, object], policy: "RedactionPolicy | Treatment"
) -> tuple[dict[str, object], Counts]:
    """A request with every text in it redacted; the same object when nothing changed.

    Covers messages (string or parts), tool results, arguments of earlier calls, descriptions in
    tool definitions, metadata, user, and any field this gateway does not know. Base64 data
    passes. Raises BlockedContent.
    """
    treatment = Treatment.of(policy)
    new = rewrite(body, WholeFields(treatment, NAMES))
    return (new if isinstance(new, dict) else body), treatment.counts


def redact_chat_completion(
    body: dict[str, object],
    policy: "RedactionPolicy | Treatment",
    *,
    logprobs: Logprobs = "drop",
    audio: Audio = "drop",
    tool_arguments: ToolArguments = True,
) -> tuple[dict[str, object], Counts]:
    """A whole answer redacted, every choice; the same object when nothing changed.

    The text of each field equals what a stream of it would show. Raises BlockedContent, also for
    log probabilities and audio when they are to be refused.
    """
    treatment = Treatment.of(policy, tool_arguments=tool_arguments)
    choices = body.get("choices")
    if isinstance(choices, list):
        bare = [
            without_copies(choice, logprobs, audio) if isinstance(choice, dict) else choice
            for choice in choices
        ]
        if any(new is not old for new, old in zip(bare, choices, strict=True)):
            body = {**body, "choices": bare}
    new = rewrite(body, WholeFields(treatment, NAMES))
    return (new if isinstance(new, dict) else body), treatment.counts


def without_copies(
    choice: dict[str, object], logprobs: Logprobs, audio: Audio
) -> dict[str, object]:
    """`choice` without what says its text again in a form that nobody can redact.

    Log probabilities spell it out token by token; the bytes of audio speak it.
    """
    if choice.get("logprobs") is not None:
        if logprobs == "refuse":
            raise BlockedContent("logprobs")
        choice = {**choice, "logprobs": None}
    for root in ("delta", "message"):
        message = choice.get(root)
        spoken = message.get("audio") if isinstance(message, dict) else None
        if audio == "pass" or not isinstance(spoken, dict) or not spoken.get("data"):
            continue
        if audio == "refuse":
            raise BlockedContent("audio")
        silent = {**message, "audio": {**spoken, "data": ""}} if isinstance(message, dict) else {}
        choice = {**choice, root: silent}
    return choice
