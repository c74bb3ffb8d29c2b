"""Is what we stream what we redact whole? Asked by the package chunk-invariance.

Runs in the environment of the foreign suites, with our source on the path: the library needs
nothing but the standard library. Prints one line for each filter; fails at the first difference.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator

from chunk_invariance import assert_chunk_invariant

from tests.unit.redaction import messages, responses
from tests.unit.redaction.argument_documents import DOCUMENTS
from tests.unit.redaction.chat import Client, content, finish
from tests.unit.redaction.samples import KEPT, MASKED
from tidegate.redaction import ChatStreamRedactor, RedactionPolicy, Redactor, Treatment
from tidegate.redaction.arguments import ArgumentsRedactor

DEFAULT = RedactionPolicy.preset("default")
STRICT = RedactionPolicy.preset("strict")
TEXTS = [*(text for _, text, _ in MASKED), *KEPT]
LONG = 60
"""Up to so many characters all splits in three are tried, beyond only those in two."""
LONGEST = 1_500
Filter = Callable[[Iterable[str]], Iterator[str]]


def by_text(policy: RedactionPolicy) -> Filter:
    """The redactor of one text."""

    def stream(chunks: Iterable[str]) -> Iterator[str]:
        redactor = Redactor(policy)
        for chunk in chunks:
            yield redactor.feed(chunk)
        yield redactor.flush()

    return stream


def by_chat(chunks: Iterable[str]) -> Iterator[str]:
    """The events of a chat completion."""
    redactor, client = ChatStreamRedactor(DEFAULT), Client()
    for event in (*map(content, chunks), finish()):
        for data in redactor.feed(event):
            client.read(data)
    yield client.texts[0]


def by_response(chunks: Iterable[str]) -> Iterator[str]:
    """The events of a response; every copy of the text has to agree."""
    upstream = responses.Upstream()
    upstream.message(list(chunks))
    yield responses.run(upstream.completed())[0].texts()[0]


def by_message(chunks: Iterable[str]) -> Iterator[str]:
    """The events of a message."""
    upstream = messages.Upstream()
    upstream.text(list(chunks))
    yield messages.run(upstream.stopped())[0].texts()[0]


def by_arguments(chunks: Iterable[str]) -> Iterator[str]:
    """The arguments of a tool call."""
    redactor = ArgumentsRedactor(Treatment(DEFAULT))
    for chunk in chunks:
        yield redactor.feed(chunk)
    yield redactor.flush()


def main() -> int:
    """Every filter over every text that suits it."""
    filters: list[tuple[str, Filter, Callable[[str], str], list[str]]] = [
        ("text, default", by_text(DEFAULT), lambda text: DEFAULT.redact(text).text, TEXTS),
        ("text, strict", by_text(STRICT), lambda text: STRICT.redact(text).text, TEXTS),
        ("chat events", by_chat, lambda text: DEFAULT.redact(text).text, TEXTS),
        ("response events", by_response, lambda text: DEFAULT.redact(text).text, TEXTS),
        ("message events", by_message, lambda text: DEFAULT.redact(text).text, TEXTS),
        ("tool arguments", by_arguments, lambda raw: "".join(by_arguments([raw])), DOCUMENTS),
    ]
    for name, stream, whole, texts in filters:
        exhaustive = name.startswith(("text", "tool"))
        splits = 0
        for text in texts:
            if len(text) > LONGEST:
                continue
            parts = 3 if exhaustive and len(text) <= LONG else 2
            splits += assert_chunk_invariant(stream, whole, text, splits=parts)
        sys.stdout.write(json.dumps({"filter": name, "texts": len(texts), "splits": splits}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
