"""Which leaves of a document in some dialect are text, and which are structure, JSON or sealed?

Lives here: the walk over a document in which every field is complete, with the names that a
dialect uses. Does not live here: the names themselves (chat_fields, responses_fields,
messages_fields), texts that go on in later events (channels, open_texts).
"""

import re
from dataclasses import dataclass

from tidegate.redaction.arguments import ArgumentsRedactor
from tidegate.redaction.judgement import judge_text
from tidegate.redaction.leaves import BASE64_LEAST, Holder, LeafRedactor, Path
from tidegate.redaction.treatment import Treatment

_JUDGED_MAX = 16
STRUCTURAL_MAX = 256
"""A longer value of a structural field is text like any other."""

_SEALED = re.compile(r"[A-Za-z0-9+/=_\-]*")
_ID = re.compile(r"[!-~]*")
_WORD = re.compile(r"[A-Za-z][A-Za-z_.:/+\-]*")
_IDENTIFIER = re.compile(r"[A-Za-z0-9_.:/\-]*")


@dataclass(frozen=True, slots=True)
class Names:
    """Where a dialect keeps what is no text, by the names of fields. Anything else is text.

    `ids` are compared or sent back: without spaces they pass, and are judged. `words` are out of
    a list: they pass if they look like words. `clocks` are numbers that are times or seeds.
    `sealed` is encrypted or signed by the upstream: it passes if it looks like that, and is
    counted. A `name` is an identifier and passes if it looks like one, and `arguments` are JSON
    text, where the field around it or the `type` beside it is in the sets of these names. Inside
    the fields in `free` a name means nothing: callers and models write there what they like.
    Inside the fields in `inputs` stands what a function is called with, as JSON that is no text.
    """

    ids: frozenset[str]
    words: frozenset[str]
    clocks: frozenset[str]
    sealed: frozenset[str] = frozenset()
    named_in: frozenset[str] = frozenset()
    named_types: frozenset[str] = frozenset()
    called_in: frozenset[str] = frozenset()
    called_types: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset({"arguments", "metadata"})
    inputs: frozenset[str] = frozenset({"arguments"})

    def is_identifier(self, path: Path, holder: Holder) -> bool:
        """The leaf is the name of a function."""
        return path[-1] == "name" and _stands(path, holder, self.named_in, self.named_types)

    def is_arguments(self, path: Path, holder: Holder) -> bool:
        """The leaf is JSON text that a function is called with."""
        return path[-1:] == ("arguments",) and _stands(
            path, holder, self.called_in, self.called_types
        )


def _stands(path: Path, holder: Holder, parents: frozenset[str], types: frozenset[str]) -> bool:
    around = next((step for step in reversed(path[:-1]) if isinstance(step, str)), "")
    if around in parents:
        return True
    kind = holder.get("type") if isinstance(holder, dict) else None
    return isinstance(kind, str) and kind in types


class WholeFields:
    """The leaves of a document; a `Visitor`. Serves any number of documents of one treatment."""

    def __init__(self, treatment: Treatment, names: Names) -> None:
        self.treatment = treatment
        self._names = names
        self._named = names.ids | names.words | names.sealed | {"name"}
        self._leaves = LeafRedactor(treatment)
        arguments = treatment.for_arguments
        self._inputs = None if arguments is None else LeafRedactor(arguments)
        self._judged: dict[str, set[str]] = {}
        self.key = self._leaves.key

    def members(self, items: list[object], path: Path) -> None:
        """See `Visitor`."""
        if self._names.inputs.isdisjoint(path):
            self._leaves.members(items, path)

    def text(self, text: str, path: Path, holder: Holder) -> str:
        """See `Visitor`."""
        if not self._names.inputs.isdisjoint(path[:-1]):
            return text if self._inputs is None else self._inputs.text(text, path, holder)
        if self.passes(text, path, holder):
            return text
        if not self._names.is_arguments(path, holder):
            return self._leaves.text(text, path, holder)
        treatment = self.treatment.for_arguments
        if treatment is None:
            return text
        redactor = ArgumentsRedactor(treatment)
        return redactor.feed(text) + redactor.flush()

    def number(self, number: int | float, path: Path) -> object:
        """See `Visitor`."""
        if not self._names.inputs.isdisjoint(path[:-1]):
            return number if self._inputs is None else self._inputs.number(number, path)
        is_clock = bool(path) and path[-1] in self._names.clocks
        return number if is_clock else self._leaves.number(number, path)

    def passes(self, text: str, path: Path, holder: Holder) -> bool:
        """The leaf is no text: it steers a client, or only the upstream can read it."""
        key = path[-1] if path else None
        if key not in self._named or not isinstance(key, str):
            return False
        names = self._names
        if not names.free.isdisjoint(path[:-1]):
            return False
        if len(text) <= STRUCTURAL_MAX:
            if key in names.words:
                return bool(_WORD.fullmatch(text)) and self.treatment.policy.program.clean(text)
            is_id = key in names.ids and _ID.fullmatch(text)
            if is_id or (names.is_identifier(path, holder) and _IDENTIFIER.fullmatch(text)):
                self._judge(key, text)
                return True
        if len(text) >= BASE64_LEAST and key in names.sealed and _SEALED.fullmatch(text):
            self.treatment.counts.passes("sealed")
            return True
        return False

    def _judge(self, key: str, text: str) -> None:
        """Count a structural value with a finding; each once, and so many of one field.

        Some providers give every event an id of its own, and to look at all costs more than the
        event. Values with a finding are not kept.
        """
        judged = self._judged.setdefault(key, set())
        if text not in judged and len(judged) < _JUDGED_MAX:
            judged.add("" if judge_text(text, "structural", self.treatment) else text)
