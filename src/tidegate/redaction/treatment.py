"""What happens to each text of one request or one answer?

Lives here: the choice of the stages that a text goes through, made once for a document or a
stream, and their assembly for every text in it. Does not live here: the stages (stream,
arguments), which strings are texts (leaves, chat_fields, channels).
"""

from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, Self

from tidegate.redaction.spans import Counts
from tidegate.redaction.stream import Piece, Redactor

if TYPE_CHECKING:
    from tidegate.redaction.policy import RedactionPolicy

ToolArguments = bool | Literal["detect"]
"""True: redacted; "detect": findings are counted, the text stays; False: passed unread."""


class Text(Protocol):
    """One text on its way through."""

    @property
    def pending(self) -> int:
        """Characters that arrived and have not left."""

    def feed(self, text: str) -> str:
        """What may leave after `text` arrived. Raises BlockedContent."""

    def flush(self) -> str:
        """The rest, judged as text that has ended. A later `feed` begins a new text."""

    def feed_pieces(self, text: str) -> list[Piece]:
        """Like `feed`, as pieces that say which part of the original each stands for."""

    def flush_pieces(self) -> list[Piece]:
        """Like `flush`, as pieces."""


class Treatment:
    """How the texts of one document or stream are treated; `counts` is shared by all of them.

    `tool_arguments` may be weaker than the rest. Cheap to make, for one request.
    """

    def __init__(
        self,
        policy: "RedactionPolicy",
        *,
        counts: Counts | None = None,
        tool_arguments: ToolArguments = True,
    ) -> None:
        self.policy = policy
        self.counts = Counts() if counts is None else counts
        self._tool_arguments: ToolArguments = tool_arguments

    @classmethod
    def of(
        cls, policy: "RedactionPolicy | Treatment", *, tool_arguments: ToolArguments = True
    ) -> "Treatment":
        """`policy` itself if it is a treatment, else the plain one under it."""
        if isinstance(policy, Treatment):
            return policy
        return cls(policy, tool_arguments=tool_arguments)

    @cached_property
    def for_arguments(self) -> Self | None:
        """How the strings in the arguments of tool calls are treated; None if they pass unread."""
        if self._tool_arguments is True:
            return self
        if self._tool_arguments == "detect":
            return type(self)(self.policy.observing(), counts=self.counts)
        return None

    def text(self, *, lead: str = "") -> Text:
        """The way of one text; `lead` is thought to stand before it, for example `password:`."""
        return Redactor(self.policy, counts=self.counts, keep_spans=False, lead=lead)

    def whole(self, text: str, key: str = "") -> str:
        """`text`, which is the complete value of the field `key`. Raises BlockedContent."""
        program = self.policy.program
        lead = f"{key}:" if key and program.secret_key(key) else ""
        if not lead and program.clean(text):
            return text
        way = self.text(lead=lead)
        return way.feed(text) + way.flush()
