"""How does a step stand in the file, and is its text known already?

Lives here: the canonical JSON of each step, and the texts of those that come again and again.
Does not live here: what of a step may be written down at all (entries).
"""

from typing import Final

from msgspec import Raw

from tidegate.records.entries import Snapshot, Step, canonical, written_step

_MOST: Final = 4096
_MOST_CHARS: Final = 128


class StepTexts:
    """Writes snapshots down; strings of operands as a hash under `hash_key`.

    Most steps of most requests say what others have said: a caller was known, a tool was allowed by
    this rule, nothing was found. A step is remembered only if it stands in the file letter for
    letter, so nothing is kept here that the file may not hold. From any thread: who writes what is
    known to another meanwhile has written it twice.
    """

    def __init__(self, hash_key: bytes) -> None:
        self._hash_key = hash_key
        self._known: dict[tuple[object, ...], Raw] = {}

    def body(self, snapshot: Snapshot) -> str:
        """The canonical JSON of `Snapshot.body`. Costs about 1 us for each step that is known."""
        written = snapshot.frame()
        written["steps"] = [self._text(step) for step in snapshot.steps]
        return canonical(written)

    def _text(self, step: Step) -> Raw:
        values = step.values
        if step.operands or step.found:
            return self._written(step)[0]
        # True is 1 and 1 is 1.0, but not in a file.
        key = (*step[:3], *values, *values.values(), *map(type, values.values()))
        text = self._known.get(key)
        if text is None:
            text, is_verbatim = self._written(step)
            if is_verbatim:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[key] = text
        return text

    def _written(self, step: Step) -> tuple[Raw, bool]:
        """The text, and whether all of the step stands in it as it is, and is short."""
        written = written_step(step, self._hash_key)
        values = {name: value for name, value in step.values.items() if value is not None}
        text = canonical(written)
        is_verbatim = written.get("values", {}) == values and len(text) <= 4 * _MOST_CHARS
        return Raw(text.encode()), is_verbatim


__all__ = ["StepTexts"]
