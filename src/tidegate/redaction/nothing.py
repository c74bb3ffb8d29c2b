"""Is it plain at a glance that nothing is found in a JSON tree?

Lives here: the look at a tree that gathers nothing and changes nothing. Does not live here: what
is found, and what becomes of it (leaves), what a text may hold (program).

Most trees hold nothing, and a walk that could change them is work for nobody. "Perhaps" is no
finding: whoever is told so walks the tree as if nobody had looked. "Nothing" has to be right. So
this look is as strict as the walk everywhere, and stricter where being exact costs time: what lies
below a field that names a secret, what has the letters of base64, long texts and numbers of nine
digits are left to it.
"""

from typing import TYPE_CHECKING

from tidegate.redaction.leaves import BASE64, BASE64_LEAST, LEAST, MAX_DEPTH, Holder
from tidegate.redaction.parts import CONTENT_LISTS, may_be_cut

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.redaction.program import Program

_NUMBERS = (int, float)
_LONG = 4096


def holds_nothing(tree: object, program: "Program") -> bool:
    """Walking `tree` would find, count and change nothing. False only means "perhaps".

    That is for a walk whose texts no vault and no classifier concerns. Never raises because of a
    tree, however deep. Cost: one search in every text, up to the first doubt; about a microsecond
    for each text of a line.
    """
    # What is no object is the one member of a list here, and may be a level less deep for it.
    level: list[Holder] = [tree] if isinstance(tree, dict) else [[tree]]
    for _ in range(MAX_DEPTH + 1):
        below: list[Holder] = []
        for holder in level:
            if not _holds_nothing_itself(holder, program, below):
                return False
        if not below:
            return True
        level = below
    return False


def _holds_nothing_itself(holder: Holder, program: "Program", below: list[Holder]) -> bool:
    """Nothing is found in the keys and leaves of `holder`; the holders in it go to `below`."""
    members: Iterable[tuple[str | int, object]]
    if isinstance(holder, dict):
        if not program.plain_keys(holder):
            return False
        members = holder.items()
    else:
        members = enumerate(holder)
    for place, member in members:
        if isinstance(member, str):
            if _is_left(member) or not program.clean(member):
                return False
        elif isinstance(member, list):
            if place in CONTENT_LISTS and may_be_cut(member, program.clean):
                return False
            below.append(member)
        elif isinstance(member, dict):
            below.append(member)
        elif isinstance(member, _NUMBERS) and not -LEAST < member < LEAST:
            return False
    return True


def _is_left(text: str) -> bool:
    """It may be base64, or the search in it is the whole cost, and would be made twice."""
    return len(text) >= BASE64_LEAST and (
        len(text) > _LONG or text.startswith("data:") or BASE64.fullmatch(text) is not None
    )
