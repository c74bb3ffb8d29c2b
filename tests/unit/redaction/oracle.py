"""What would a plain reading of the rules mask in a whole text?

Written apart from the product: no segments, no anchors, no stream, only regular expressions over
the whole text. It covers the families whose rules are local (e-mail, SSN, card, keys, JWT) and
is slow on purpose.
"""

import re

_FOLDED = {
    **{0xFF10 + i: str(i) for i in range(10)},
    **{0x660 + i: str(i) for i in range(10)},
    0xFF20: "@",
    0x00A0: " ",
    0x202F: " ",
    0x2011: "-",
    0x2013: "-",
}
_GONE = "\u200b\u200c\u200d\u00ad\u2060\ufeff\u0301"

_LATIN = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u036f\u1e00-\u1eff"
_EMAIL = re.compile(
    rf"([{_LATIN}0-9_][{_LATIN}0-9._%+'~\-]{{0,63}})(?:@|%40)"
    rf"(?![0-9]+\.[0-9]+\.)(?:[{_LATIN}0-9\-]+\.)+[{_LATIN}][{_LATIN}0-9\-]*[{_LATIN}0-9]"
)
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9]{20}[A-Za-z0-9_\-]*"
    r"|sk-(?:[a-z0-9]{2,10}-){1,2}(?=[a-z_\-]{0,24}[A-Z0-9])[A-Za-z0-9_\-]{24,}"
    r"|sk-(?:proj|ant-api03)-[A-Za-z0-9_\-]{16,}"
    r"|AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|ghp_[A-Za-z0-9]{20}[A-Za-z0-9_\-]*)"
)
_JWT = re.compile(
    r"(?<![A-Za-z0-9])eyJ(?:[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}|[A-Za-z0-9_\-]{200,})"
    r"(?:\.[A-Za-z0-9_\-]+)*"
)
_SSN = re.compile(
    r"(?<![A-Za-z0-9])(?<![0-9]\.)(?<![0-9]-)(?!000|666|9)[0-9]{3}[ \-](?!00)[0-9]{2}[ \-]"
    r"(?!0000)[0-9]{4}(?![A-Za-z0-9])(?!\.[0-9])(?!-[0-9])"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CARD_START = re.compile(r"(?<![A-Za-z0-9])(?<![0-9]\.)[2-68]")
_JOINED = r"[ .\n\-]"


def _luhn(digits: str) -> bool:
    doubled = [int(c) * (1 + i % 2) for i, c in enumerate(digits[::-1])]
    return sum(d // 10 + d % 10 for d in doubled) % 10 == 0


def _network(digits: str) -> bool:
    return re.fullmatch(
        r"4[0-9]{12,18}|5[1-5][0-9]{14}|3[47][0-9]{13}|6011[0-9]{12,15}|6(?:4[4-9]|5)[0-9]{13,17}"
        r"|62[0-9]{14,17}|60[0-9]{14}|8[12][0-9]{14}|35(?:2[89]|[3-8][0-9])[0-9]{12,15}"
        r"|3(?:0[0-59]|6|[89])[0-9]{11,17}|220[0-4][0-9]{12,15}|(?:50|5[678]|63|67)[0-9]{11,17}"
        r"|(?:222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}",
        digits,
    ) is not None and (len(digits) >= (14 if digits[0] == "3" else 13))


def _grouped(text: str, start: int, end: int) -> bool:
    number = text[start:end]
    sizes = [len(group) for group in re.split(_JOINED, number)]
    if "\n" in number:
        return all(size == 4 for size in sizes[:-1])
    if all(size >= 3 for size in sizes[:-1]):
        return len(sizes) <= 6
    even = all(size == sizes[0] for size in sizes[:-1]) and sizes[-1] <= sizes[0] <= 2
    alone = not re.search(rf"[0-9]{_JOINED}$", text[:start]) and not re.match(
        rf"{_JOINED}[0-9]", text[end:]
    )
    return even and alone


def _cards(text: str) -> list[tuple[int, int]]:
    uuids = [found.span() for found in _UUID.finditer(text)]
    cards = []
    for start in (found.start() for found in _CARD_START.finditer(text)):
        for digits in range(19, 12, -1):
            found = re.compile(rf"[0-9](?:{_JOINED}?[0-9]){{{digits - 1}}}").match(text, start)
            if not found or re.match(r"[A-Za-z0-9]|\.[0-9]", text[found.end() :]):
                continue
            number = re.sub(_JOINED, "", found[0])
            if not (_network(number) and _luhn(number) and _grouped(text, *found.span())):
                continue
            if any(low < found.end() and start < high for low, high in uuids):
                continue
            cards.append(found.span())
            break
    return cards


def mask(original: str) -> str:
    """`original` with every value of the five families replaced."""
    kept = [(place, c) for place, c in enumerate(original) if c not in _GONE]
    text = "".join(c for _, c in kept).translate(_FOLDED)
    hits = [(*found.span(), 0, "SECRET") for found in _JWT.finditer(text)]
    hits += [(*found.span(), 1, "SECRET") for found in _KEY.finditer(text)]
    hits += [(*found.span(), 2, "EMAIL") for found in _EMAIL.finditer(text) if found[1] != "git"]
    hits += [(*span, 3, "CARD") for span in _cards(text)]
    hits += [(*found.span(), 4, "SSN") for found in _SSN.finditer(text)]
    chosen: list[tuple[int, int, str]] = []
    for start, end, _, word in sorted(hits, key=lambda hit: (hit[0], hit[2], -hit[1])):
        if chosen and start < chosen[-1][1]:
            head, stop, first = chosen[-1]
            chosen[-1] = (head, max(stop, end), first)
        else:
            chosen.append((start, end, word))
    out, place = [], 0
    for start, end, word in chosen:
        out += [original[place : kept[start][0]], f"[REDACTED_{word}]"]
        place = kept[end - 1][0] + 1
    return "".join([*out, original[place:]])
