"""What does a client see of each recorded stream?

`python -m tests.unit.redaction.transcripts` writes the `.shown` files anew. Look at the
difference before you keep it: they are the expectation.
"""

from collections.abc import Iterator
from pathlib import Path

from tidegate import sse
from tidegate.redaction import (
    ChatStreamRedactor,
    MessagesStreamRedactor,
    RedactionPolicy,
    ResponsesStreamRedactor,
)

FOLDER = Path(__file__).parents[2] / "data" / "transcripts"
TRANSCRIPTS = sorted(path.stem for path in FOLDER.glob("*.sse"))
_POLICY = RedactionPolicy.preset("default")
_DONE = b"[DONE]"


def shown(name: str, chunks: list[bytes]) -> bytes:
    """The stream that leaves for the upstream bytes `chunks`. `name` begins with the dialect."""
    return b"".join(_encoded(name.split("_", 1)[0], _events(chunks)))


def _events(chunks: list[bytes]) -> Iterator[sse.Event]:
    decoder = sse.Decoder(1 << 20)
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.finish()


def _encoded(dialect: str, events: Iterator[sse.Event]) -> Iterator[bytes]:
    if dialect == "chat":
        chat = ChatStreamRedactor(_POLICY)
        for event in events:
            if event.data == _DONE:
                yield from map(sse.encode, chat.finish())
                yield sse.encode(_DONE)
            else:
                yield from map(sse.encode, chat.feed(event.data))
        return
    named: ResponsesStreamRedactor | MessagesStreamRedactor = (
        ResponsesStreamRedactor(_POLICY)
        if dialect == "responses"
        else MessagesStreamRedactor(_POLICY)
    )
    for event in events:
        for name, data in named.feed(event.data, event.event or ""):
            yield sse.encode(data, event=name)
    for name, data in named.finish():
        yield sse.encode(data, event=name)


def main() -> None:
    """Write every expectation anew."""
    for name in TRANSCRIPTS:
        sent = (FOLDER / f"{name}.sse").read_bytes()
        (FOLDER / f"{name}.shown").write_bytes(shown(name, [sent]))


if __name__ == "__main__":
    main()
