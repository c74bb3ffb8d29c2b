"""What do workers and the owner of the ledger say to each other?

Lives here: the calls and the answers, each as it lies in a frame of MessagePack. Does not live
here: where a frame ends (frames), what a call does (owner), who waits for it (owned).

A worker sends all calls of one turn of its loop in one frame, and the limits that they speak of
once before: from then on a limit is a number. Answers come in the order of the calls.
"""

from typing import TypeVar

from msgspec import Struct, msgpack

from tidegate.frames import Malformed, framed
from tidegate.limits.ledger import Limit, Need, Scope, Unit, Usage


class Term(Struct, frozen=True, array_like=True):
    """What the books know of a limit. They are numbered from 0 as they are sent."""

    name: str
    unit: Unit
    cap: int
    window_s: float
    per: Scope

    @classmethod
    def of(cls, limit: Limit) -> "Term":
        """The part of `limit` that the books need."""
        return cls(limit.name, limit.unit, limit.cap, limit.window_s, limit.per)

    def limit(self) -> Limit:
        """The limit, as far as the books are concerned."""
        return Limit(self.name, self.unit, self.cap, self.window_s, self.per)


class Reserve(Struct, frozen=True, array_like=True, tag=0):
    """See Ledger.reserve; `charges` are (number of the limit, scope, amount)."""

    reservation_id: str
    owner: str
    lease_us: int
    charges: tuple[tuple[int, str, int], ...]
    is_money: bool = False


class Settle(Struct, frozen=True, array_like=True, tag=1):
    """See Ledger.settle."""

    reservation_id: str
    owner: str
    need: Need | None


class Release(Struct, frozen=True, array_like=True, tag=2):
    """See Ledger.release."""

    reservation_id: str
    owner: str


class Look(Struct, frozen=True, array_like=True, tag=3):
    """See Ledger.usage."""

    limit: int
    scope_key: str


class Walk(Struct, frozen=True, array_like=True, tag=4):
    """See Ledger.scopes."""

    limits: tuple[int, ...]


Call = Reserve | Settle | Release | Look | Walk
Stands = tuple[tuple[int, float], ...]
"""What is used and when all of it has left, for each charge."""


class Granted(Struct, frozen=True, array_like=True, tag=0):
    """It is reserved."""

    standings: Stands


class Refused(Struct, frozen=True, array_like=True, tag=1):
    """No room; `place` is the number of the charge whose limit is named."""

    place: int
    used: int
    retry_after_s: float
    exact: bool
    standings: Stands


class NeverFits(Struct, frozen=True, array_like=True, tag=2):
    """No wait helps; `place` as in Refused."""

    place: int


class Ended(Struct, frozen=True, array_like=True, tag=3):
    """Whether the lease was there to be ended."""

    changed: bool


class Looked(Struct, frozen=True, array_like=True, tag=4):
    """What is used."""

    usage: Usage


class Walked(Struct, frozen=True, array_like=True, tag=5):
    """(Place of the limit in the call, scope) of each counter."""

    found: tuple[tuple[int, str], ...]


class Failed(Struct, frozen=True, array_like=True, tag=6):
    """Nothing of it is in the books; what must happen will be. `why`: a few words for the log."""

    why: str


class Bad(Struct, frozen=True, array_like=True, tag=7):
    """The call itself is wrong."""

    why: str


Answer = Granted | Refused | NeverFits | Ended | Looked | Walked | Failed | Bad


class Calls(Struct, frozen=True, array_like=True):
    """A frame of a worker: new limits, then calls."""

    terms: tuple[Term, ...]
    calls: tuple[Call, ...]


class Answers(Struct, frozen=True, array_like=True):
    """A frame of the owner: how the store is, then answers to the oldest calls."""

    degraded: bool
    clock_ahead_s: float
    answers: tuple[Answer, ...]


_T = TypeVar("_T")

_encode = msgpack.Encoder().encode
_CALLS: msgpack.Decoder[Calls] = msgpack.Decoder(Calls)
_ANSWERS: msgpack.Decoder[Answers] = msgpack.Decoder(Answers)


def encode(message: Calls | Answers) -> bytes:
    """The message as it lies on the wire."""
    return framed(_encode(message))


def calls_in(body: bytes) -> Calls:
    """A frame of a worker. Raises Malformed."""
    return _decoded(_CALLS, body)


def answers_in(body: bytes) -> Answers:
    """A frame of the owner. Raises Malformed."""
    return _decoded(_ANSWERS, body)


def _decoded(decoder: "msgpack.Decoder[_T]", body: bytes) -> _T:
    try:
        return decoder.decode(body)
    except ValueError:
        raise Malformed from None
