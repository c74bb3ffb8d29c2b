"""How fast does another library look for personal data in the same text?

Run by bench_redaction.py with the Python of bench/.venv as `python redaction_peer.py NAME FILE`.
Says "ready"; for each line on stdin it goes through the file once and prints seconds of
processor time for blocks of 4 KiB and, where the library can stream, for pieces of a model's size
(else 0). Each of them gets the kinds that it knows among e-mail, SSN, card and key.
"""

# ruff: noqa: PLC0415 - each library is imported where it is used, and may be missing

import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.corpus import blocks, tokens

Call = Callable[[str], object]
_HOLD = 64


def partial() -> tuple[Call, Call | None]:
    """The usual hold-back: `regex` says from where on a match might still be under way."""
    import regex

    pattern = regex.compile(
        r"(?P<EMAIL>[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.[A-Za-z]{2,})"
        r"|(?P<SSN>\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b)"
        r"|(?P<CARD>\b[0-9](?:[ \-]?[0-9]){12,18}\b)"
        r"|(?P<SECRET>\bsk-[A-Za-z0-9]{20,})"
    )
    held = ""

    def feed(piece: str) -> str:
        nonlocal held
        text, place, out = held + piece, 0, []
        hold = len(text)
        for found in pattern.finditer(text, partial=True):
            if found.partial or found.end() == len(text):
                hold = found.start()
                break
            out += [text[place : found.start()], f"[REDACTED_{found.lastgroup}]"]
            place = found.end()
        hold = max(hold, place, len(text) - _HOLD)
        held = text[hold:]
        return "".join([*out, text[place:hold]])

    return feed, feed


def cpex() -> tuple[Call, Call | None]:
    """cpex-pii-filter with all its kinds, whole texts."""
    from cpex_pii_filter import PIIDetectorRust

    detector = PIIDetectorRust({})
    return lambda text: detector.mask(text, detector.detect(text)), None


def datafog() -> tuple[Call, Call | None]:
    """datafog with its regex engine, whole texts."""
    import datafog

    kinds = ["EMAIL", "SSN", "CREDIT_CARD"]
    return lambda text: datafog.redact(text, entity_types=kinds), None


def presidio() -> tuple[Call, Call | None]:
    """The pattern recognizers of presidio, without a language model, whole texts."""
    import presidio_analyzer.predefined_recognizers as known
    import tldextract

    # It would ask the network for a list of top level domains.
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())
    names = ("EmailRecognizer", "CreditCardRecognizer", "UsSsnRecognizer")
    recognizers = [getattr(known, name)() for name in names]

    def analyze(text: str) -> object:
        return [each.analyze(text, each.supported_entities, None) for each in recognizers]

    return analyze, None


PEERS = {"partial": partial, "cpex": cpex, "datafog": datafog, "presidio": presidio}


def spent(call: Call | None, pieces: list[str]) -> float:
    """Processor seconds for all pieces."""
    if call is None:
        return 0.0
    begin = process_time()
    for piece in pieces:
        call(piece)
    return process_time() - begin


def main() -> None:
    """Answer one line with one round."""
    text = Path(sys.argv[2]).read_text(encoding="utf-8")
    whole, stream = PEERS[sys.argv[1]]()
    whole("jane@example.com 4111 1111 1111 1111")
    large, small = blocks(text), tokens(text)
    print("ready", flush=True)  # noqa: T201 - the parent reads it
    for _ in sys.stdin:
        print(spent(whole, large), spent(stream, small), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
