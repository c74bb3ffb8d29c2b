"""What is said to Redis about the books, and what does it answer?

Lives here: the names of the keys, the scripts with their numbers, commands as bytes and the
words of an answer. Does not live here: what the scripts decide (lua/), connections (redis_pipe),
time and waiting (redis).

Every key has a time limit of its own. The counters of one tenant share a `{hash tag}`; the
indexes over all tenants do not, so the scripts need one primary that holds every key.
"""

import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from struct import pack, unpack_from
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from tidegate.limits.books import EXPIRE_AT_MOST, FORGET_AT_MOST, counter_key
from tidegate.limits.ledger import (
    Charge,
    Granted,
    Limit,
    Need,
    NeverFits,
    Refused,
    Standing,
    Unit,
    Usage,
    measure,
)
from tidegate.limits.window import BUCKETS, CONCURRENT_RETRY_S

Script = Literal["reserve", "finish", "usage", "greet", "retime"]
How = Literal["settle", "stand", "release", "undo"]

SCRIPTS: tuple[Script, ...] = get_args(Script)
SLACK_S = 7_200
"""How much longer than its content a key lives: a clock set ahead by an hour must not empty it."""
TOLERANCE_US = 5_000_000
"""How far the clock of the server may be ahead of what has passed before it counts as set."""

_NUMBERS = {
    "NONE": -1,
    "NEVER": 2**53,
    "BUCKETS": BUCKETS,
    "EXPIRE_AT_MOST": EXPIRE_AT_MOST,
    "FORGET_AT_MOST": FORGET_AT_MOST,
    "OVERDUE_AT_MOST": 4_096,
    "CONCURRENT_RETRY_US": round(CONCURRENT_RETRY_S * 1_000_000),
    "SLACK_MS": SLACK_S * 1_000,
    "TOLERANCE_US": TOLERANCE_US,
    "TOMBSTONE_US": 3_600_000_000,
}


_FIRST: Mapping[Script, tuple[str, ...]] = MappingProxyType({"reserve": ("reserve_first",)})


class Forgotten(Exception):
    """These are not the books that this process knows: they were emptied or exchanged."""


class UnknownAnswer(Exception):
    """Not an answer of these scripts: something else runs under their names."""


class GaveUp(Exception):
    """The reservation came after its caller had given it up, and was not made."""


class Answer(NamedTuple):
    """What a script answered: a letter, and the numbers behind the time.

    `now_us` is store time. `moved_us` is how far this call moved store time against the clock of
    the server: not 0 if that clock was set back.
    """

    now_us: int
    moved_us: int
    letter: bytes
    numbers: tuple[int, ...]


class Moment(NamedTuple):
    """What the asking process knows of the time, in microseconds, and of the books.

    `newest_us` is the latest store time that is plausible to it, `given_us` a time to use
    instead of the server's (for tests). None: unknown; ask the server. `books` is the number of
    the books it knows; None: any will do.
    """

    newest_us: int | None = None
    given_us: int | None = None
    books: int | None = None

    @property
    def numbers(self) -> tuple[int, int, int]:
        """As arguments of a script."""
        none = _NUMBERS["NONE"]
        return (
            none if self.given_us is None else self.given_us,
            none if self.newest_us is None else self.newest_us,
            none if self.books is None else self.books,
        )


NO_MOMENT = Moment()
UNITS: tuple[Unit, ...] = get_args(Unit)


def command(*words: str | bytes | int) -> bytes:
    """One command as the protocol wants it."""
    return b"*%d\r\n%b" % (len(words), b"".join(map(_bulk, words)))


def _bulk(word: str | bytes | int) -> bytes:
    if not isinstance(word, bytes):
        # A name may hold what is no UTF-8; it must not become another name.
        word = str(word).encode("utf-8", "backslashreplace")
    return b"$%d\r\n%b\r\n" % (len(word), word)


def packed(numbers: Sequence[int]) -> bytes:
    """As the scripts read and answer numbers."""
    return pack(f"<{len(numbers)}q", *numbers)


class Speech:
    """Commands for one set of keys, all of which begin with `prefix`."""

    def __init__(self, prefix: str = "tidegate") -> None:
        self.sources = {script: _source(script) for script in SCRIPTS}
        self._digests = {
            script: hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
            for script, source in self.sources.items()
        }
        self._prefix = prefix
        self._indexes = (f"{prefix}:leases", f"{prefix}:due", f"{prefix}:counters")
        self._heads: dict[tuple[Script, int, int], bytes] = {}
        self.pattern = f"{prefix}:{{*}}:*"
        """What matches every counter, for SCAN."""

    def load(self) -> list[bytes]:
        """Make the scripts known to the server."""
        return [command("SCRIPT", "LOAD", source) for source in self.sources.values()]

    def reserve(
        self, lease: tuple[str, str], charges: Sequence[Charge], lease_us: int, moment: Moment
    ) -> bytes:
        """Take `charges` for `lease` = (id, owner)."""
        reservation_id, owner = lease
        keys = list[str]()
        numbers, units = [*moment.numbers, lease_us], list[str]()
        for charge in charges:
            limit = charge.limit
            keys.append(self.counter(limit, charge.scope_key))
            units.append(limit.unit)
            numbers += (limit.cap, limit.window_us, charge.amount)
        return self._call("reserve", keys, (packed(numbers), reservation_id, owner, *units))

    def finish(
        self,
        lease: tuple[str, str],
        how: How,
        need: Need | None = None,
        moment: Moment = NO_MOMENT,
    ) -> bytes:
        """End the lease of (id, owner)."""
        words: list[str | bytes | int] = [packed(moment.numbers), *lease, how]
        if need is not None:
            for unit in UNITS:
                words += (unit, measure(unit, need))
        return self._call("finish", (), words)

    def usage(self, limit: Limit, scope_key: str, moment: Moment) -> bytes:
        """What a counter holds."""
        numbers = packed((*moment.numbers, limit.window_us))
        return self._call("usage", (self.counter(limit, scope_key),), (numbers, limit.unit))

    def greet(self, member: str, lasts_us: int, moment: Moment, fresh: int) -> bytes:
        """Be one of those who share the store for so long; 0: leave.

        Books that have no number yet get `fresh`, which is above 0.
        """
        numbers = packed((*moment.numbers, lasts_us, fresh))
        return self._call("greet", (f"{self._prefix}:members",), (numbers, member))

    def retime(self, was_us: int, becomes_us: int) -> bytes:
        """Move store time by `becomes_us` if it is moved by `was_us`."""
        return self._call("retime", (), (packed((was_us, becomes_us)),))

    def counter(self, limit: Limit, scope_key: str) -> str:
        """The key of a counter. The hash tag is the tenant, or "global"."""
        tag = scope_key.partition(":")[2].partition("/")[0] or scope_key
        return f"{self._prefix}:{{{tag}}}:{counter_key(limit, scope_key)}"

    def counter_of(self, key: str) -> str:
        """What books.counter_key says for the counter that has this key."""
        return key.removeprefix(f"{self._prefix}:{{").partition("}:")[2]

    def _call(
        self, script: Script, keys: Sequence[str], words: Sequence[str | bytes | int]
    ) -> bytes:
        """Every script gets the indexes as its first keys."""
        shape = script, len(keys), len(words)
        head = self._heads.get(shape)
        if head is None:
            count = len(self._indexes) + len(keys)
            begin: list[str | bytes | int] = ["EVALSHA", self._digests[script], count]
            begin += self._indexes
            total = len(begin) + len(keys) + len(words)
            head = self._heads[shape] = b"*%d\r\n%b" % (total, b"".join(map(_bulk, begin)))
        return b"".join((head, *map(_bulk, keys), *map(_bulk, words)))


def answer(reply: object) -> Answer:
    """What one of the scripts that know the time said; raises UnknownAnswer."""
    if not isinstance(reply, bytes) or len(reply) % 8 != 1 or len(reply) < 17:
        raise UnknownAnswer
    now_us, moved_us, *numbers = unpack_from(f"<{len(reply) // 8}q", reply, 1)
    return Answer(now_us, moved_us, reply[:1], tuple(numbers))


def verdict(
    said: Answer, reservation_id: str, charges: Sequence[Charge]
) -> Granted | Refused | NeverFits:
    """What `reserve` decided; raises ValueError as books.reserve does, GaveUp, UnknownAnswer."""
    match said.letter, said.numbers:
        case b"G", numbers if len(numbers) == 2 * len(charges):
            return Granted(reservation_id, _standings(said.now_us, charges, numbers))
        case b"R", (place, wait_us, *numbers) if len(numbers) == 2 * len(charges):
            charge, standings = charges[place], _standings(said.now_us, charges, numbers)
            return Refused(
                charge.limit,
                standings[place].used,
                charge.amount,
                wait_us / 1_000_000,
                exact=charge.limit.unit != "concurrent",
                standings=standings,
            )
        case b"N", (place,):
            return NeverFits(charges[place].limit, charges[place].amount)
        case b"H", ():
            return Granted(reservation_id)
        case b"U", ():
            raise ValueError("this reservation id was used before")
        case b"T", ():
            raise GaveUp
        case _:
            raise UnknownAnswer


def usage_of(said: Answer, limit: Limit) -> Usage:
    """What `usage` found; raises UnknownAnswer."""
    if said.letter != b"U" or len(said.numbers) != 4:
        raise UnknownAnswer
    total, reserved, overrun, oldest_us = said.numbers
    free = max(0, limit.cap - total)
    if limit.unit == "concurrent":
        return Usage(0, total, free, None)
    next_free_s = (oldest_us + limit.window_us - said.now_us) / 1_000_000 if oldest_us else None
    return Usage(total - reserved, reserved, free, next_free_s, overrun)


def greeting(said: Answer) -> tuple[int, int]:
    """How many share the books, and the number of these; raises UnknownAnswer."""
    if said.letter != b"M" or len(said.numbers) != 2:
        raise UnknownAnswer
    return max(1, said.numbers[0]), said.numbers[1]


def moved_of(said: Answer) -> int | None:
    """How far time is moved, in microseconds, if it was asked whether a clock is ahead, else None.

    Raises Forgotten, UnknownAnswer.
    """
    match said.letter, said.numbers:
        case b"F", _:
            raise Forgotten
        case b"L", (moved_us,):
            return moved_us
        case b"L", _:
            raise UnknownAnswer
        case _:
            return None


def _standings(
    now_us: int, charges: Sequence[Charge], numbers: Sequence[int]
) -> tuple[Standing, ...]:
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return tuple(
        _standing(charge.limit, used, newest_us, now_us)
        for charge, (used, newest_us) in zip(charges, pairs, strict=True)
    )


def _standing(limit: Limit, used: int, newest_us: int, now_us: int) -> Standing:
    reset_us = newest_us + limit.window_us - now_us if newest_us else 0
    return Standing(limit, used, max(0, limit.cap - used), reset_us / 1_000_000)


def _source(script: Script) -> str:
    folder = files("tidegate.limits") / "lua"
    numbers = "".join(f"local {name} = {number}\n" for name, number in _NUMBERS.items())
    words = "local CONCURRENT, TOMBSTONE = 'concurrent', 'x'\n"
    parts = ("common", *_FIRST.get(script, ()), "counters", script)
    return (
        numbers
        + words
        + "".join(folder.joinpath(f"{part}.lua").read_text("utf-8") for part in parts)
    )


__all__ = [
    "NO_MOMENT",
    "SCRIPTS",
    "SLACK_S",
    "TOLERANCE_US",
    "UNITS",
    "Answer",
    "Forgotten",
    "GaveUp",
    "How",
    "Moment",
    "Script",
    "Speech",
    "UnknownAnswer",
    "answer",
    "command",
    "greeting",
    "moved_of",
    "packed",
    "usage_of",
    "verdict",
]
