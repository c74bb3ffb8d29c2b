"""What happens to each text of one request or one answer?

Lives here: the choice of the stages that a text goes through, made once for a document or a
stream, and their assembly for every text in it. Does not live here: the stages (stream, sentences,
vault, arguments), which strings are texts (leaves, chat_fields, channels).

The order: the detectors first, then the classifier, then the vault. So a classifier is not told
what a detector has found, a value that the model made up is masked, and a value that the vault
puts back is looked at by nobody after it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, partial
from typing import Literal, Protocol

from tidegate.redaction.arguments import quoted
from tidegate.redaction.folding import fold
from tidegate.redaction.hits import Hit
from tidegate.redaction.holes import Found, Holes, Judged, is_worth_asking
from tidegate.redaction.policy import RedactionPolicy
from tidegate.redaction.sentences import Sentences
from tidegate.redaction.spans import PLACEHOLDER, Counts, Kind
from tidegate.redaction.stream import Piece, Redactor
from tidegate.redaction.vault import Restorer, Vault

_SLICE = 65_536
_LEAD_MAX = 64
_SHORT, _CLEAN_MAX = 128, 1024
_JOINT = re.compile(r"[_\-]+|(?<=[a-z])(?=[A-Z])")

# Names that say nothing about what is in them. Streams carry the same texts under other names,
# so a name in front of one would make the copies of a text differ.
_TEXTS = frozenset(
    {
        "code",
        "command",
        "content",
        "delta",
        "diff",
        "input",
        "output",
        "reasoning",
        "reasoning_content",
        "refusal",
        "stderr",
        "stdout",
        "summary",
        "text",
        "thinking",
        "transcript",
    }
)

ToolArguments = bool | Literal["detect"]
"""True: redacted; "detect": findings are counted, the text stays; False: passed unread."""


class Abandoned(Exception):
    """Nobody waits for this text any more."""


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

    `tool_arguments` may be weaker than the rest. `replace` gives what stands for a value of a kind
    in place of the plain placeholder. The values of `vault` are put back. With `holes` a
    classifier is asked about every text. Cheap to make, for one request.
    """

    def __init__(
        self,
        policy: RedactionPolicy,
        *,
        counts: Counts | None = None,
        tool_arguments: ToolArguments = True,
        replace: Callable[[Kind, str], str] | None = None,
        vault: Vault | None = None,
        holes: Holes | None = None,
    ) -> None:
        self.policy = policy
        self.counts = Counts() if counts is None else counts
        self._tool_arguments: ToolArguments = tool_arguments
        self._replace = replace
        self._vault = vault if vault else None
        self._holes = holes
        self._wanted = _Wanted()
        self._clean: set[str] = set()

    def abandon(self) -> None:
        """Nobody waits any more: work that goes on in another thread ends soon, with Abandoned."""
        self._wanted.still = False

    @classmethod
    def of(
        cls, policy: "RedactionPolicy | Treatment", *, tool_arguments: ToolArguments = True
    ) -> "Treatment":
        """`policy` itself if it is a treatment, else the plain one under it."""
        if isinstance(policy, Treatment):
            return policy
        return cls(policy, tool_arguments=tool_arguments)

    @classmethod
    def restoring(cls, vault: Vault) -> "Treatment":
        """Nothing is looked for; only the values of `vault` are put back."""
        return cls(_nothing(), vault=vault)

    @cached_property
    def for_arguments(self) -> "Treatment | None":
        """How the strings in the arguments of tool calls are treated; None if they pass unread."""
        if self._tool_arguments is True:
            return self
        if self._tool_arguments == "detect":
            policy = self.policy.observing()
        elif self._vault is not None:
            policy = _nothing()
        else:
            return None
        weaker = Treatment(policy, counts=self.counts, vault=self._vault)
        weaker._wanted = self._wanted
        return weaker

    def text(self, *, lead: str = "", inside_json: bool = False) -> Text:
        """The way of one text; `lead` is thought to stand before it, for example `password:`.

        `inside_json`: the caller writes what leaves into a JSON string that is itself a text.
        """
        redactor = Redactor(
            self.policy, counts=self.counts, keep_spans=False, lead=lead, replace=self._replace
        )
        restorer = self._vault.restorer() if self._vault is not None else None
        if self._holes is not None:
            return _Checked(self, self._holes, redactor, restorer, inside_json=inside_json)
        return redactor if restorer is None else _Restored(redactor, restorer)

    def lead_of(self, key: str) -> str:
        """What the name of a field says about the value in it, as text in front of the value."""
        if not key or key in _TEXTS:
            return ""
        name = key[-_LEAD_MAX:]
        if not self.policy.program.secret_key(name):
            name = _JOINT.sub(" ", name)  # `socialSecurityNumber` and `card_number` are words
        return f"{name}:"

    def whole(self, text: str, key: str = "") -> str:
        """`text`, which is the complete value of the field `key`. Raises BlockedContent."""
        program = self.policy.program
        is_secret = bool(key) and program.secret_key(key)
        if not is_secret and self._is_clean(text) and not self._concerns_others(text):
            return text
        way = self.text(lead=self.lead_of(key))
        if len(text) <= _SLICE:
            self._check()
            return way.feed(text) + way.flush()
        return "".join([*map(way.feed, self._slices(text)), way.flush()])

    def _is_clean(self, text: str) -> bool:
        """See Program.clean. A document says the same short things over and over."""
        if text in self._clean:
            return True
        if not self.policy.program.clean(text):
            return False
        if len(text) <= _SHORT and len(self._clean) < _CLEAN_MAX:
            self._clean.add(text)
        return True

    def put(self, judged: Judged) -> str:
        """The texts with what a classifier found in them masked and counted."""
        return "".join(self._put(text, found) for text, found in judged)

    def _slices(self, text: str) -> Iterator[str]:
        for place in range(0, len(text), _SLICE):
            self._check()
            yield text[place : place + _SLICE]

    def _check(self) -> None:
        if not self._wanted.still:
            raise Abandoned

    def _concerns_others(self, text: str) -> bool:
        """A stage after the detectors may change `text`."""
        if self._holes is not None and is_worth_asking(text):
            return True
        return self._vault is not None and "[" in text

    def _put(self, text: str, found: Sequence[Found]) -> str:
        out: list[str] = []
        place = 0
        for start, end, kind in _outside_placeholders(text, found):
            value = text[start:end]
            seen = fold(value)
            hit = Hit(0, len(seen), "classifier", "classifier", kind)
            if not self.policy.program.accepts(seen, hit):
                continue
            put = kind.placeholder if self._replace is None else self._replace(kind, value)
            out += (text[place:start], put)
            place = end
            self.counts[kind.label] = self.counts.get(kind.label, 0) + 1
        return "".join((*out, text[place:]))


class _Wanted:
    """Whether somebody still waits; shared by the treatments of one document."""

    __slots__ = ("still",)

    def __init__(self) -> None:
        self.still = True


@cache
def _nothing() -> RedactionPolicy:
    """A policy that finds nothing, for texts that are only read for placeholders."""
    return RedactionPolicy({})


def _outside_placeholders(text: str, found: Sequence[Found]) -> Iterator[Found]:
    """`found` without what lies in placeholders, and without parts that name nothing."""
    for start, end, kind in found:
        place = start
        for placeholder in (*PLACEHOLDER.finditer(text, 0), None):
            stop, after = placeholder.span() if placeholder else (end, end)
            part = text[place : min(max(stop, place), end)]
            name = part.strip()
            if any(map(str.isalnum, name)):
                first = place + part.index(name)
                yield Found(first, first + len(name), kind)
            place = max(place, after)


class _Restored:
    """A text whose placeholders are turned back."""

    __slots__ = ("_redactor", "_restorer")

    def __init__(self, redactor: Redactor, restorer: Restorer) -> None:
        self._redactor = redactor
        self._restorer = restorer

    @property
    def pending(self) -> int:
        return self._redactor.pending + self._restorer.pending

    def feed(self, text: str) -> str:
        return self._restorer.feed(self._redactor.feed(text))

    def flush(self) -> str:
        return self._restorer.feed(self._redactor.flush()) + self._restorer.flush()

    def feed_pieces(self, text: str) -> list[Piece]:
        return self._restorer.feed_pieces(self._redactor.feed_pieces(text))

    def flush_pieces(self) -> list[Piece]:
        rest = self._restorer.feed_pieces(self._redactor.flush_pieces())
        return rest + self._restorer.flush_pieces()


class _Checked:
    """A text that a classifier reads sentence by sentence; what leaves is a marker at a time."""

    __slots__ = (
        "_holes",
        "_inside_json",
        "_opened",
        "_redactor",
        "_restorer",
        "_sentences",
        "_treatment",
    )

    def __init__(
        self,
        treatment: Treatment,
        holes: Holes,
        redactor: Redactor,
        restorer: Restorer | None,
        *,
        inside_json: bool,
    ) -> None:
        self._treatment = treatment
        self._holes = holes
        self._redactor = redactor
        self._restorer = restorer
        self._inside_json = inside_json
        self._sentences = Sentences()
        self._opened = False  # a hole of this text, whose end may still be held by the restorer

    @property
    def pending(self) -> int:
        held = self._restorer.pending if self._restorer is not None else 0
        return self._redactor.pending + self._sentences.pending + held

    def feed(self, text: str) -> str:
        return self._hole(self._sentences.feed(self._redactor.feed(text)), last=False)

    def flush(self) -> str:
        rest = self._sentences.feed(self._redactor.flush()) + self._sentences.flush()
        return self._hole(rest, last=True)

    def feed_pieces(self, text: str) -> list[Piece]:
        return self._as_one(self._redactor.feed_pieces(text), last=False)

    def flush_pieces(self) -> list[Piece]:
        return self._as_one(self._redactor.flush_pieces(), last=True)

    def _as_one(self, pieces: list[Piece], *, last: bool) -> list[Piece]:
        """One piece for all of them: how a text was spelled is lost with the wait."""
        texts = self._sentences.feed("".join(piece.text for piece in pieces))
        if last:
            texts += self._sentences.flush()
        taken = sum(piece.taken for piece in pieces)
        return [Piece(self._hole(texts, last=last), taken, replaced=True)]

    def _hole(self, texts: list[str], *, last: bool) -> str:
        if not texts and not (last and self._opened and self._restorer is not None):
            return ""
        self._opened = not last
        return self._holes.open(texts, partial(self._render, last=last))

    def _render(self, judged: Judged, *, last: bool) -> str:
        text = self._treatment.put(judged)
        if self._restorer is not None:
            text = self._restorer.feed(text)
            text += self._restorer.flush() if last else ""
        return quoted(text)[1:-1] if self._inside_json else text
