"""Is there a tool of this name at the server, as far as its caller may know?

Lives here: which names of tools a server has shown, when its list is asked for before a call, and
what follows for the call. Pure; time is an argument. Does not live here: what the rules say
(authorize), how a list is asked for (gateway.tool_requests.asked_lists), what the client is told
(denials).

With `hide_denied: full` a denied name must look like one that does not exist. A server has its own
way to say that, and its own ways to fail before it does: only if it is asked about neither are the
two alike. So a name that the server has not shown is looked up in its list, in the words of the
caller, and so is one that is denied: whatever becomes of the list becomes of both. Then both are
answered by us. Names that were shown and may be called cost a look into a set.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct

from tidegate.mcp.authorize import ARGUMENTS, DENIED, NO_RULE
from tidegate.mcp.rules import RuleSet
from tidegate.mcp.sessions import Recent
from tidegate.policy import Allow, Decision, Deny, Principal

NOT_OFFERED: Final = Deny("mcp.hide_denied", "not_offered")
"""The decision against a tool that the rules would allow and the server does not list."""

LOOK_S: Final = 1.0
"""For how long a list that was asked for says what is not there."""

MOST_NAMES: Final = 10_000
"""Names that are known of one server, and as many as it may list to be asked for its list."""

_MOST_LOOKS: Final = 1_024
_MOST_NAME_CHARS: Final = 128

Standing = Literal["open", "hidden", "apart"]
"""What the rules say of a name: it may be called with some arguments; nobody may know whether it
exists; what is wrong with the call has nothing to do with that."""

Step = Literal["goes_on", "look", "unknown", "failed"]


class Look(Struct, frozen=True):
    """How asking a server for its list ended: with the names in it (in Offers), without a list as
    the server knows no such method (`has_list` False), or not at all (`failure`: the word for it,
    `status`: that of HTTP, 0 for none).
    """

    began_s: float
    has_list: bool = True
    failure: str | None = None
    status: int = 0


def standing_of(decision: Decision) -> Standing:
    """What a decision over a call of a tool says of its name."""
    if isinstance(decision, Allow) or decision.reason == ARGUMENTS:
        return "open"
    return "hidden" if decision.reason in (DENIED, NO_RULE) else "apart"


def step(
    standing: Standing,
    *,
    is_shown: bool,
    is_held_back: bool,
    is_guessable: bool,
    look: Look | None,
) -> Step:
    """What follows for a call, after the last `look`, if there was one that still counts.

    `is_shown`: the server has shown a tool of this name. `is_held_back`: as far as is known its
    pin refuses it, which is looked at when the call goes on. `is_guessable`: the rules allow this
    caller some name that the server has not shown (see admits_unknown). Where they do not, every
    name that is not shown and allowed is denied by the rules alone: those that exist are like all
    the others, and nobody has to be asked.
    """
    if standing == "apart":
        return "goes_on"
    if standing == "open" and is_shown and not (is_held_back and is_guessable):
        return "goes_on"
    if standing == "hidden" and not is_guessable:
        return "unknown"
    if look is None:
        return "look"
    if look.failure is not None:
        return "failed"
    # What nobody can look up must be tried; what is denied stays denied.
    may_exist = is_shown or not look.has_list
    return "goes_on" if standing == "open" and may_exist else "unknown"


def admits_unknown(
    rules: RuleSet, principal: Principal, server: str, is_known: Callable[[str], bool]
) -> bool:
    """Whether the rules may allow the principal a tool that the server has not shown.

    A rule with a pattern may, and one that names a tool that the server does not have. Cost: the
    allows that concern the principal, and their names.
    """
    for rule in rules.allows:
        if rule.speaks_of("tools") and rule.concerns(principal, server):
            for pattern in rule.rule.patterns("tools"):
                if not _SIGNS.isdisjoint(pattern) or not is_known(pattern):
                    return True
    return False


_SIGNS: Final = frozenset("*?")


def names_in(tools: Iterable[object]) -> Iterator[str]:
    """The names in a list of tools; what has none that a call may have is left out."""
    for tool in tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str) and len(name) <= _MOST_NAME_CHARS:
            yield name


class Offers:
    """The names that each server has shown, and the last looks at their lists.

    `since` is what must be as it was for any of it to count: where the server is reached, in which
    life, and what it has said of changes. Whatever equals it is the same; the last one counts.
    """

    def __init__(self) -> None:
        self._shown: dict[str, tuple[object, set[str]]] = {}
        self._looks: Recent[tuple[object, Look]] = Recent(_MOST_LOOKS)

    def knows(self, server: str, since: object, tool: str) -> bool:
        """Whether the server has shown a tool of this name. Cost: one look into a set."""
        shown = self._shown.get(server)
        return shown is not None and tool in shown[1] and shown[0] == since

    def show(self, server: str, since: object, tools: Collection[object]) -> None:
        """The server has listed these, as it wrote them. Cost: their number."""
        shown = self._shown.get(server)
        known = shown[1] if shown is not None and shown[0] == since else set()
        known.update(names_in(tools))
        if len(known) > MOST_NAMES:  # what it has listed last is what will be called
            known = set(list(names_in(tools))[:MOST_NAMES])
        self._shown[server] = since, known

    def looked(self, asker: object, since: object, look: Look) -> None:
        """A list was asked for, by `asker`: a server, and whoever may see another list of it."""
        self._looks.put(asker, (since, look))

    def recall(self, asker: object, since: object, now_s: float) -> Look | None:
        """The look that saves another one: not older than a second, and nothing has changed."""
        found = self._looks.get(asker)
        if found is None or found[0] != since or now_s - found[1].began_s >= LOOK_S:
            return None
        return found[1]


__all__ = [
    "LOOK_S",
    "MOST_NAMES",
    "NOT_OFFERED",
    "Look",
    "Offers",
    "Standing",
    "Step",
    "admits_unknown",
    "names_in",
    "standing_of",
    "step",
]
