"""How is personal data and every secret kept out of text, also when the text is a stream?

Lives here: the public names. Everything in this package is pure: text in, text out.
"""

from tidegate.redaction.policy import FAMILIES, RedactionPolicy
from tidegate.redaction.spans import BlockedContent, Counts, Redacted, Span, TooManyChannels
from tidegate.redaction.stream import Redactor, RedactorSet

__all__ = [
    "FAMILIES",
    "BlockedContent",
    "Counts",
    "Redacted",
    "RedactionPolicy",
    "Redactor",
    "RedactorSet",
    "Span",
    "TooManyChannels",
]
