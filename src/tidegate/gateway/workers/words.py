"""What do a parent and its workers say to each other?

Lives here: the messages of both directions, each one frame in MessagePack. Does not live here:
where one ends (frames), who says what when (plan, duty), the pipes (channel).
"""

from typing import Literal, TypeVar

from msgspec import Struct, msgpack

from tidegate.frames import Malformed, framed
from tidegate.gateway.target_rows import TargetRow

About = Literal["pulse", "readiness", "metrics", "targets"]


class Begin(Struct, frozen=True, tag=True):
    """The first message: come up with this configuration (pickled), the `generation`th.

    `secret` is the same for all workers: what is hashed under it compares equal among them.
    """

    generation: int
    config: bytes
    secret: bytes


class Accept(Struct, frozen=True, tag=True):
    """Accept connections."""


class Offer(Struct, frozen=True, tag=True):
    """Build all that this configuration (pickled) asks for, and change nothing yet."""

    generation: int
    config: bytes


class Take(Struct, frozen=True, tag=True):
    """Put in force what was built."""

    generation: int


class Drop(Struct, frozen=True, tag=True):
    """Forget what was built."""

    generation: int


class Ask(Struct, frozen=True, tag=True):
    """Say how things are; the answer carries the same `number`."""

    number: int
    about: About


class Drain(Struct, frozen=True, tag=True):
    """Accept no more and leave when the running requests have ended."""


class Leave(Struct, frozen=True, tag=True):
    """Leave at once."""


class Opened(Struct, frozen=True, tag=True):
    """Everything is open; nothing is accepted yet."""

    generation: int


class CannotStart(Struct, frozen=True, tag=True):
    """This worker ends now, and this is why."""

    problem: str


class Accepting(Struct, frozen=True, tag=True):
    """Connections are accepted."""


class Willing(Struct, frozen=True, tag=True):
    """It is built."""

    generation: int


class Unwilling(Struct, frozen=True, tag=True):
    """It cannot be built, or was never offered."""

    generation: int
    problem: str


class Took(Struct, frozen=True, tag=True):
    """It is in force."""

    generation: int


class Leaving(Struct, frozen=True, tag=True):
    """Nothing is accepted any more; what runs ends."""


class Sample(Struct, frozen=True, array_like=True):
    """One number of a family."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Family(Struct, frozen=True, array_like=True):
    """One metric as Prometheus sees it; `kind` is counter, gauge, histogram or info."""

    name: str
    text: str
    kind: str
    samples: tuple[Sample, ...]


class Told(Struct, frozen=True, tag=True):
    """The answer to an Ask; number 0 was not asked for."""

    number: int
    readiness: dict[str, object] | None = None
    families: tuple[Family, ...] | None = None
    targets: tuple[TargetRow, ...] | None = None


ToWorker = Begin | Accept | Offer | Take | Drop | Ask | Drain | Leave
ToParent = Opened | CannotStart | Accepting | Willing | Unwilling | Took | Leaving | Told

_M = TypeVar("_M")


def encode(message: ToWorker | ToParent) -> bytes:
    """The message as it lies on the wire."""
    return framed(msgpack.encode(message))


def for_worker(body: bytes) -> ToWorker:
    """A message of the parent. Raises Malformed."""
    return _decoded(_FOR_WORKER, body)


def for_parent(body: bytes) -> ToParent:
    """A message of a worker. Raises Malformed."""
    return _decoded(_FOR_PARENT, body)


_FOR_WORKER: msgpack.Decoder[ToWorker] = msgpack.Decoder(ToWorker)
_FOR_PARENT: msgpack.Decoder[ToParent] = msgpack.Decoder(ToParent)


def _decoded(decoder: "msgpack.Decoder[_M]", body: bytes) -> _M:
    try:
        return decoder.decode(body)
    except ValueError:
        raise Malformed from None
