"""Who keeps the keys of the issuers at hand?

Lives here: one task for each issuer that fetches its keys at the start and again and again, and the
fetch that an unknown key id asks for, which all who wait share. Does not live here: when a fetch is
due (jwks_ring), the connection (`fetch`), who is named (jwt).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from tidegate.clock import Clock
from tidegate.identity.jwks_ring import KeyRing, RingTimes, Standing
from tidegate.identity.jwt_claims import IssuerSettings
from tidegate.identity.jwt_keys import Algorithms, BrokenKeySet, SigningKey

logger = logging.getLogger(__name__)

Fetch = Callable[[str], Awaitable[bytes]]
"""The document at an address, bounded in size and time; raises FetchFailed."""

# Who asks for a fetch holds a slot of the gateway meanwhile, and need not be anybody we know.
_MOST_WAITING: Final = 64
_DEFAULT_TIMES: Final = RingTimes()


class FetchFailed(Exception):
    """Nothing came that could be used; `reason` is a word of ours."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class IssuerKeys:
    """The keys of one issuer, kept by a task between `start` and `stop`."""

    def __init__(
        self,
        settings: IssuerSettings,
        fetch: Fetch,
        algorithms: Algorithms,
        clock: Clock,
        times: RingTimes = _DEFAULT_TIMES,
    ) -> None:
        self.issuer = settings.issuer
        self._url = settings.jwks_url
        self._fetch, self._algorithms, self._clock = fetch, algorithms, clock
        self._ring = KeyRing(times)
        self._fetching: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._waiting = 0

    @property
    def standing(self) -> Standing:
        """See there."""
        return self._ring.standing(self._clock.monotonic_s())

    @property
    def keys(self) -> tuple[SigningKey, ...]:
        """What to judge by right now."""
        return self._ring.keys(self._clock.monotonic_s())

    def start(self) -> None:
        """Fetch in the background, from now on."""
        self._keeping = asyncio.get_running_loop().create_task(self._keep())

    async def stop(self) -> None:
        """Fetch no more."""
        tasks = [task for task in (self._keeping, self._fetching) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def refresh(self) -> None:
        """Wait for the fetch that runs, or for one of our own if none was asked for lately.

        When many wait already, the next one does not.
        """
        if self._waiting >= _MOST_WAITING:
            return
        if self._fetching is not None or self._ring.ask(self._clock.monotonic_s()):
            self._waiting += 1
            try:
                await self._shared()
            finally:
                self._waiting -= 1

    async def _keep(self) -> None:
        while True:
            await self._shared()
            turn = asyncio.Event()
            asyncio.get_running_loop().call_later(self._ring.next_in_s, turn.set)
            await turn.wait()

    async def _shared(self) -> None:
        """One fetch at a time; who stops waiting does not end it for the others."""
        task = self._fetching
        if task is None:
            task = self._fetching = asyncio.get_running_loop().create_task(self._load())
            task.add_done_callback(self._loaded)
        await asyncio.wait((task,))

    async def _load(self) -> None:
        document = await self._fetch(self._url)
        self._ring.loaded(self._algorithms.keys(document), self._clock.monotonic_s())

    def _loaded(self, task: "asyncio.Task[None]") -> None:
        self._fetching = None
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._ring.failed()
        reason = error.reason if isinstance(error, FetchFailed) else "key_set"
        if not isinstance(error, FetchFailed | BrokenKeySet):
            reason = type(error).__name__
        logger.warning("issuer_keys_not_fetched", extra={"issuer": self.issuer, "reason": reason})


class TokenKeys:
    """The keys of all issuers of the configuration in force.

    `retain` says which those are; an issuer that stays keeps what was fetched. Between `open` and
    `close` they are kept current.
    """

    def __init__(self, fetch: Fetch, clock: Clock) -> None:
        self._fetch, self.clock = fetch, clock
        self._algorithms: Algorithms | None = None
        self._issuers: dict[tuple[str, str], IssuerKeys] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._open = False

    @property
    def algorithms(self) -> Algorithms:
        """Loaded at the first use; may be used in a thread first."""
        if self._algorithms is None:
            self._algorithms = Algorithms()
        return self._algorithms

    def warm(self) -> None:
        """Load what judging needs; in whatever thread this runs."""
        self._algorithms = self.algorithms

    def of(self, settings: IssuerSettings) -> IssuerKeys | None:
        """The keys of an issuer; None once no configuration has it."""
        return self._issuers.get((settings.issuer, settings.jwks_url))

    def retain(self, wanted: Iterable[IssuerSettings]) -> None:
        """These issuers and no others, from now on."""
        named = {(each.issuer, each.jwks_url): each for each in wanted}
        for name in [name for name in self._issuers if name not in named]:
            left = self._issuers.pop(name)
            if self._open:
                task = asyncio.get_running_loop().create_task(left.stop())
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)
        for name, settings in named.items():
            if name not in self._issuers:
                keys = IssuerKeys(settings, self._fetch, self.algorithms, self.clock)
                self._issuers[name] = keys
                if self._open:
                    keys.start()

    async def open(self) -> None:
        """Begin to fetch; nobody waits for it."""
        self._open = True
        for keys in self._issuers.values():
            keys.start()

    async def close(self) -> None:
        """Fetch no more."""
        self._open = False
        for keys in self._issuers.values():
            await keys.stop()
        if self._leaving:
            await asyncio.wait(self._leaving)

    @property
    def without_keys(self) -> list[str]:
        """The issuers whose tokens cannot be judged right now."""
        return [k.issuer for k in self._issuers.values() if k.standing in ("missing", "expired")]

    @property
    def any_usable(self) -> bool:
        """Whether tokens of some issuer can be judged."""
        return len(self.without_keys) < len(self._issuers)


__all__ = ["Fetch", "FetchFailed", "IssuerKeys", "TokenKeys"]
