"""Where does one message end and the next begin, on a stream between our own processes?

Lives here: a length of four bytes, big-endian, before each message, and cutting what arrives by
it. Does not live here: what the messages are (gateway.workers.words, limits.owner_frames).
"""

MAX_BYTES = 67_108_864
"""No message is longer: a length beyond it is no length."""

_LENGTH_BYTES = 4


class Malformed(Exception):
    """What came is no message. Says nothing of what it was."""


def framed(body: bytes) -> bytes:
    """The message as it lies on the wire."""
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


class Frames:
    """Cuts what arrives into messages, however it was split on its way."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete now, undecoded. Raises Malformed."""
        self._rest += data
        complete: list[bytes] = []
        at = 0
        while len(self._rest) - at >= _LENGTH_BYTES:
            begin = at + _LENGTH_BYTES
            length = int.from_bytes(self._rest[at:begin], "big")
            if length > MAX_BYTES:
                raise Malformed
            if len(self._rest) < begin + length:
                break
            at = begin + length
            complete.append(bytes(self._rest[begin:at]))
        del self._rest[:at]
        return complete


__all__ = ["MAX_BYTES", "Frames", "Malformed", "framed"]
