"""Where in the arguments of a call is this fault?

A checker names its own path, in which the branches of a union and the keys of a map have steps of
their own. Lives here: the JSON pointer (RFC 6901) to what the client sent. Pure. Does not live
here: what is wrong there (strict).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_MOST_CHARS: Final = 200
Step = int | str


def steps_in(path: Sequence[Step], arguments: object, *, missing: bool = False) -> tuple[Step, ...]:
    """The steps of `path` that lead through `arguments`; with `missing` the last one does not.

    What is no member of an object and no place in a list is a name of the checker's own.
    """
    node: Any = arguments
    steps: list[Step] = []
    last = len(path) - 1
    for number, step in enumerate(path):
        if _leads_on(node, step):
            node = node[step]
        elif not (missing and number == last):
            continue
        steps.append(step)
    return tuple(steps)


def _leads_on(node: object, step: Step) -> bool:
    if isinstance(node, list):
        return isinstance(step, int) and step < len(node)
    return isinstance(node, Mapping) and step in node


def pointer(steps: Sequence[Step]) -> str:
    """The pointer; cut where names of the caller's make it long."""
    escaped = (str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    return "".join(f"/{step}" for step in escaped)[:_MOST_CHARS]


__all__ = ["pointer", "steps_in"]
