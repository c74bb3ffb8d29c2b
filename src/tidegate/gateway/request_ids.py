"""What is a request called?

Lives here: minting the ids that join log, record, reservation and answer. Does not live here:
who uses them (front).
"""

import secrets

from tidegate.clock import Clock

_RANDOM_BYTES = 10
_IDS_AT_ONCE = 256


class RequestIds:
    """Milliseconds since the epoch in 12 hex digits, then 80 random bits in 20.

    They grow with time because stores keep rows in the order of their keys: new ones then lie
    side by side, where wholly random ones would touch a page of the file each. One call to the
    operating system mints many.
    """

    __slots__ = ("_bits", "_clock", "_used")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bits = ""
        self._used = 0

    def mint(self) -> str:
        """An id that was never given out."""
        if self._used == len(self._bits):
            # Filled at first use and not before: a process may be forked in between.
            self._bits, self._used = secrets.token_hex(_RANDOM_BYTES * _IDS_AT_ONCE), 0
        start, self._used = self._used, self._used + 2 * _RANDOM_BYTES
        milliseconds = int(self._clock.now_s() * 1_000) & 0xFFFF_FFFF_FFFF
        return f"{milliseconds:012x}{self._bits[start : self._used]}"


__all__ = ["RequestIds"]
