"""How is personal data and every secret kept out of text, also when the text is a stream?

Lives here: the public names. Everything in this package is pure: text in, text out.
"""

from tidegate.redaction.chat_fields import redact_chat_completion, redact_chat_request
from tidegate.redaction.chat_stream import ChatStreamRedactor
from tidegate.redaction.custom import UnusableDetector, detector
from tidegate.redaction.denylist import DenyList, Literals, UnusableLiteral
from tidegate.redaction.messages_fields import redact_message, redact_messages_request
from tidegate.redaction.messages_stream import MessagesStreamRedactor
from tidegate.redaction.open_texts import NamedEvent
from tidegate.redaction.pattern_detectors import CustomDetector
from tidegate.redaction.policy import FAMILIES, RedactionPolicy
from tidegate.redaction.responses_fields import redact_response, redact_responses_request
from tidegate.redaction.responses_stream import ResponsesStreamRedactor
from tidegate.redaction.spans import (
    BlockedContent,
    Counts,
    Redacted,
    Span,
    TooManyChannels,
    UpstreamAtFault,
)
from tidegate.redaction.stream import Redactor, RedactorSet
from tidegate.redaction.tenants import TenantPolicies
from tidegate.redaction.treatment import Treatment
from tidegate.redaction.trees import redact_tree
from tidegate.redaction.vault import Restorer, Vault

__all__ = [
    "FAMILIES",
    "BlockedContent",
    "ChatStreamRedactor",
    "Counts",
    "CustomDetector",
    "DenyList",
    "Literals",
    "MessagesStreamRedactor",
    "NamedEvent",
    "Redacted",
    "RedactionPolicy",
    "Redactor",
    "RedactorSet",
    "ResponsesStreamRedactor",
    "Restorer",
    "Span",
    "TenantPolicies",
    "TooManyChannels",
    "Treatment",
    "UnusableDetector",
    "UnusableLiteral",
    "UpstreamAtFault",
    "Vault",
    "detector",
    "redact_chat_completion",
    "redact_chat_request",
    "redact_message",
    "redact_messages_request",
    "redact_response",
    "redact_responses_request",
    "redact_tree",
]
