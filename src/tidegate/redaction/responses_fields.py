"""Which fields of the OpenAI Responses API are text, which are structure, which are arguments?

Lives here: the names, and the redaction of a request and of a whole response, where every field
is complete. Does not live here: streams (responses_stream). Anything that is not named is text.
"""

from typing import TYPE_CHECKING

from tidegate.redaction.chat_fields import Audio, Logprobs
from tidegate.redaction.fields import Names, WholeFields
from tidegate.redaction.leaves import rewrite
from tidegate.redaction.spans import BlockedContent, Counts
from tidegate.redaction.treatment import ToolArguments, Treatment

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

ARGUMENT_EVENTS = frozenset(
    {
        "response.function_call_arguments",
        "response.mcp_call.arguments",
        "response.mcp_call_arguments",
    }
)
"""Events (without `.delta` or `.done`) whose text is JSON that a function is called with."""

NAMES = Names(
    ids=frozenset(
        {
            "approval_request_id",
            "call_id",
            "container_id",
            "file_id",
            "id",
            "item_id",
            "model",
            "previous_response_id",
            "response_id",
            "vector_store_id",
        }
    ),
    words=frozenset(
        {
            "detail",
            "effort",
            "object",
            "phase",
            "role",
            "service_tier",
            "status",
            "truncation",
            "type",
            "verbosity",
        }
    ),
    clocks=frozenset(
        {"completed_at", "created_at", "expires_at", "retrieved_at", "seed", "sequence_number"}
    ),
    sealed=frozenset({"encrypted_content", "partial_image_b64"}),
    named_in=frozenset({"tool_choice", "tools"}),
    named_types=frozenset(
        {
            "custom",
            "custom_tool_call",
            "function",
            "function_call",
            "mcp_approval_request",
            "mcp_call",
            "response.function_call_arguments.done",
        }
    ),
    called_types=frozenset(
        {
            "function_call",
            "mcp_approval_request",
            "mcp_call",
            *(f"{event}.done" for event in ARGUMENT_EVENTS),
        }
    ),
    free=frozenset({"arguments", "attributes", "metadata", "variables"}),
)


def redact_responses_request(
    body: dict[str, object], policy: "RedactionPolicy | Treatment"
) -> tuple[dict[str, object], Counts]:
    """A request with every text in it redacted; the same object when nothing changed.

    Covers `input` (a string, or items with text, calls and their outputs), `instructions`,
    definitions of tools, variables of a prompt, metadata, user, and any field that is not known.
    Base64 data and encrypted reasoning pass and are counted. Raises BlockedContent.
    """
    treatment = Treatment.of(policy)
    new = rewrite(body, WholeFields(treatment, NAMES))
    return (new if isinstance(new, dict) else body), treatment.counts


def redact_response(
    body: dict[str, object],
    policy: "RedactionPolicy | Treatment",
    *,
    logprobs: Logprobs = "drop",
    audio: Audio = "drop",
    tool_arguments: ToolArguments = True,
) -> tuple[dict[str, object], Counts]:
    """A whole response redacted, every output item; the same object when nothing changed.

    The text of each field equals what a stream of it would show. Raises BlockedContent, also for
    log probabilities and audio when they are to be refused.
    """
    treatment = Treatment.of(policy, tool_arguments=tool_arguments)
    new = rewrite(without_copies(body, logprobs, audio), WholeFields(treatment, NAMES))
    return (new if isinstance(new, dict) else body), treatment.counts


def without_copies(value: dict[str, object], logprobs: Logprobs, audio: Audio) -> dict[str, object]:
    """`value` without what says a text in it again in a form that nobody can redact.

    Log probabilities become an empty list, which the dialect asks for; so does no other field.
    """
    new = _bare(value, logprobs, audio)
    return new if isinstance(new, dict) else value


def _bare(value: object, logprobs: Logprobs, audio: Audio) -> object:
    if isinstance(value, list):
        items = [_bare(item, logprobs, audio) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    changed: dict[str, object] = {}
    for key, inner in value.items():
        new = _bare(inner, logprobs, audio)
        if key == "logprobs" and inner:
            if logprobs == "refuse":
                raise BlockedContent("logprobs")
            new = [] if isinstance(inner, list) else None
        if key == "data" and inner and value.get("type") == "output_audio" and audio != "pass":
            if audio == "refuse":
                raise BlockedContent("audio")
            new = ""
        if new is not inner:
            changed[key] = new
    return {**value, **changed} if changed else value
