"""What is said to Redis about the books, and what does it answer?

Lives here: the names of the keys, the scripts with their numbers, commands as bytes and the
words of an answer. Does not live here: what the scripts decide (lua/), connections (redis_pipe),
time and waiting (redis).

Every key has a time limit of its own. The counters of one tenant share a `{hash tag}`; the
indexes over all tenants do not, so the scripts need one primary that holds every key.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, get_args

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

Script = Literal["reserve", "finish", "usage", "greet"]
How = Literal["settle", "stand", "release", "undo"]

SCRIPTS: tuple[Script, ...] = get_args(Script)
SLACK_S = 7_200
"""How much longer than its content a key lives: a clock set ahead by an hour must not empty it."""

_NUMBERS = {
    "BUCKETS": BUCKETS,
    "EXPIRE_AT_MOST": EXPIRE_AT_MOST,
    "FORGET_AT_MOST": FORGET_AT_MOST,
    "CONCURRENT_RETRY_US": round(CONCURRENT_RETRY_S * 1_000_000),
    "SLACK_MS": SLACK_S * 1_000,
    "CLOCK_MS": 7 * 86_400_000,
    "TOLERANCE_US": 5_000_000,
    "TOMBSTONE_MS": 3_600_000,
}


class UnknownAnswer(Exception):
    """Not an answer of these scripts: something else runs under their names."""


class GaveUp(Exception):
    """The reservation came after its caller had given it up, and was not made."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The words behind the time of an answer.

    `now_us` is store time. `moved_us` is how far this call moved store time against the clock of
    the server: not 0 if that clock was set ahead or back.
    """

    now_us: int
    moved_us: int
    words: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """What the asking process knows of the time, in microseconds.

    `newest` is the latest store time that is plausible to it, `given` a time to use instead of
    the server's (for tests). None: unknown; ask the server.
    """

    newest: int | None = None
    given: int | None = None

    @property
    def words(self) -> tuple[str, str]:
        """As arguments of a script."""
        return (
            "" if self.given is None else str(self.given),
            "" if self.newest is None else str(self.newest),
        )


def command(*words: str | int) -> bytes:
    """One command as the protocol wants it."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        # A name may hold what is no UTF-8; it must not become another name.
        encoded = str(word).encode("utf-8", "backslashreplace")
        parts.append(b"$%d\r\n%b\r\n" % (len(encoded), encoded))
    return b"".join(parts)


class Speech:
    """Commands for one set of keys, all of which begin with `prefix`."""

    def __init__(self, prefix: str = "tidegate") -> None:
        self.sources = {script: _source(script) for script in SCRIPTS}
        self._digests = {
            script: hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
            for script, source in self.sources.items()
        }
        self._prefix = prefix
        self._clock = f"{prefix}:clock"
        self._leases = f"{prefix}:leases"
        self._counters = f"{prefix}:counters"
        self._lease = f"{prefix}:lease:"
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
        keys = [self.counter(charge.limit, charge.scope_key) for charge in charges]
        words: list[str | int] = [*moment.words, reservation_id, owner, lease_us, self._lease]
        for charge in charges:
            limit = charge.limit
            words += (limit.unit, limit.cap, limit.window_us, charge.amount)
        indexes = (self._clock, self._leases, self._counters, self._lease + reservation_id)
        return self._call("reserve", (*indexes, *keys), words)

    def finish(self, reservation_id: str, owner: str, how: How, need: Need | None = None) -> bytes:
        """End the lease of this id."""
        words: list[str | int] = [reservation_id, owner, how]
        if need is not None:
            for unit in get_args(Unit):
                words += (unit, measure(unit, need))
        return self._call("finish", (self._lease + reservation_id, self._leases), words)

    def usage(self, limit: Limit, scope_key: str, moment: Moment) -> bytes:
        """What a counter holds."""
        keys = (self._clock, self.counter(limit, scope_key))
        return self._call("usage", keys, (*moment.words, limit.unit, limit.window_us))

    def greet(self, member: str, lasts_us: int, moment: Moment) -> bytes:
        """Be one of those who share the store for so long; 0: leave."""
        keys = (self._clock, f"{self._prefix}:members")
        return self._call("greet", keys, (*moment.words, member, lasts_us))

    def counter(self, limit: Limit, scope_key: str) -> str:
        """The key of a counter. The hash tag is the tenant, or "global"."""
        tag = scope_key.partition(":")[2].partition("/")[0] or scope_key
        return f"{self._prefix}:{{{tag}}}:{counter_key(limit, scope_key)}"

    def counter_of(self, key: str) -> str:
        """What books.counter_key says for the counter that has this key."""
        return key.removeprefix(f"{self._prefix}:{{").partition("}:")[2]

    def _call(self, script: Script, keys: Sequence[str], words: Sequence[str | int]) -> bytes:
        return command("EVALSHA", self._digests[script], len(keys), *keys, *words)


def answer(reply: object) -> Answer:
    """The words of one of the scripts that know the time; raises UnknownAnswer."""
    if not isinstance(reply, bytes):
        raise UnknownAnswer
    try:
        now_us, moved_us, *words = reply.split()
        return Answer(int(now_us), int(moved_us), tuple(words))
    except ValueError as error:
        raise UnknownAnswer from error


def verdict(
    said: Answer, reservation_id: str, charges: Sequence[Charge]
) -> Granted | Refused | NeverFits:
    """What `reserve` decided; raises ValueError as books.reserve does, GaveUp, UnknownAnswer."""
    match said.words:
        case [b"G", *numbers]:
            return Granted(reservation_id, _standings(said.now_us, charges, numbers))
        case [b"R", index, wait_us, *numbers]:
            charge, standings = charges[int(index)], _standings(said.now_us, charges, numbers)
            return Refused(
                charge.limit,
                standings[int(index)].used,
                charge.amount,
                int(wait_us) / 1_000_000,
                exact=charge.limit.unit != "concurrent",
                standings=standings,
            )
        case [b"N", index]:
            charge = charges[int(index)]
            return NeverFits(charge.limit, charge.amount)
        case [b"H"]:
            return Granted(reservation_id)
        case [b"U"]:
            raise ValueError("this reservation id was used before")
        case [b"T"]:
            raise GaveUp
        case _:
            raise UnknownAnswer


def usage_of(said: Answer, limit: Limit) -> Usage:
    """What `usage` found; raises UnknownAnswer."""
    try:
        total, reserved, overrun, oldest_us = map(int, said.words)
    except ValueError as error:
        raise UnknownAnswer from error
    free = max(0, limit.cap - total)
    if limit.unit == "concurrent":
        return Usage(0, total, free, None)
    next_free_s = (oldest_us + limit.window_us - said.now_us) / 1_000_000 if oldest_us else None
    return Usage(total - reserved, reserved, free, next_free_s, overrun)


def _standings(
    now_us: int, charges: Sequence[Charge], numbers: Sequence[bytes]
) -> tuple[Standing, ...]:
    pairs = zip(map(int, numbers[::2]), map(int, numbers[1::2]), strict=True)
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
    common, own = (folder.joinpath(f"{name}.lua").read_text("utf-8") for name in ("common", script))
    return numbers + words + common + own


__all__ = [
    "SCRIPTS",
    "SLACK_S",
    "Answer",
    "GaveUp",
    "How",
    "Moment",
    "Script",
    "Speech",
    "UnknownAnswer",
    "answer",
    "command",
    "usage_of",
    "verdict",
]
