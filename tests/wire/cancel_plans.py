"""At which moments do clients leave?

Each plan says what the upstream does, when the client leaves and how; or that it stays and a
deadline ends the request. A plan follows from its seed alone.
"""

import json
import random
from dataclasses import dataclass

from tests.wire.crowd_upstream import FAULTS

_LARGE = "x" * 500_000
"""More than sockets hold between us and an upstream that does not read."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One request. `leave` names the event; the client stays for ever if it is ""."""

    number: int
    place: str
    route: str
    scripts: tuple[str, str]
    stream: bool
    leave: str
    count: int
    turns: int
    how: str
    part: float

    def body(self) -> bytes:
        """The body of the request."""
        members: dict[str, object] = {
            "model": f"{self.route}-{self.number}",
            "stream": self.stream,
            "messages": [{"role": "user", "content": "hi"}],
            "max_tokens": 20,
        }
        if self.route == "deaf":
            members["user"] = _LARGE
        return json.dumps(members).encode()


# place: weight, route, scripts of the first target, of the second, the event to leave at,
# how often it must have happened, at most so many turns later.
_ANY = ("silent", "begins", "talks", "dribbles")
PLACES: dict[str, tuple[int, str, tuple[str, ...], tuple[str, ...], str, int, int]] = {
    "while it asks": (2, "calm", ("answers",), ("answers",), "part", 1, 3),
    "anywhere": (6, "calm", ("answers", "cuts", *FAULTS), ("answers", *_ANY), "sent", 1, 60),
    "connecting": (3, "dark", ("silent",), ("answers",), "sent", 1, 60),
    "dialing": (2, "dial", ("silent",), ("answers",), "sent", 1, 60),
    "sending the body": (1, "deaf", ("silent",), ("silent",), "deaf", 1, 20),
    "waiting for the head": (3, "calm", ("silent",), ("answers",), "asked", 1, 10),
    "before the commit": (3, "calm", ("begins", "dribbles"), ("answers",), "asked", 1, 30),
    "waiting for an error": (2, "calm", ("fails_slowly",), ("answers",), "asked", 1, 20),
    "in the middle": (4, "calm", ("talks",), ("answers",), "chunks", 6, 10),
    "between attempts": (6, "calm", FAULTS, _ANY, "asked", 1, 30),
    "in the second attempt": (3, "calm", FAULTS, _ANY, "asked", 2, 10),
    "before a retry": (3, "alone", ("fails", "breaks"), ("silent",), "asked", 1, 60),
    "while it is settled": (4, "calm", ("answers",), ("answers",), "end", 1, 4),
    "as a probe": (4, "sick", ("fails", "breaks", "silent", "begins"), _ANY, "asked", 1, 20),
    "after a deadline": (3, "late", _ANY[:2], _ANY, "asked", 2, 10),
    "by a deadline": (6, "late", (*_ANY, *FAULTS, "cuts"), (*_ANY, "cuts"), "", 1, 1),
    "by a deadline while connecting": (1, "murky", ("silent",), _ANY, "", 1, 1),
    "by a deadline while dialing": (1, "ring", ("silent",), _ANY, "", 1, 1),
}


def plans(seed: int, count: int) -> list[Plan]:
    """`count` plans; the same ones for the same seed."""
    dice = random.Random(seed)  # noqa: S311 - repeatable on purpose
    places = list(PLACES)
    weights = [PLACES[place][0] for place in places]
    found = []
    for number in range(count):
        place = dice.choices(places, weights)[0]
        _, route, first, second, leave, most, late = PLACES[place]
        found.append(
            Plan(
                number,
                place,
                route,
                (dice.choice(first), dice.choice(second)),
                # Without events there is no middle to leave in.
                leave == "chunks" or dice.random() < 0.6,
                leave,
                dice.randint(1, most) if leave == "chunks" else most,
                dice.randint(0, late),
                dice.choice(("reset", "close", "eof")),
                dice.random(),
            )
        )
    return found
