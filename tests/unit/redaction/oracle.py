"""What would a plain reading of the rules mask in a whole text?

Written apart from the product: no segments, no anchors, no stream, only regular expressions over
the whole text. It covers the families whose values show by themselves what they are (e-mail,
SSN, card, IBAN, keys, web tokens) and is slow on purpose. Which prefixes keys have and how long
the account numbers of a country are is data, which it shares with the product.
"""

import re

from tests.unit.redaction.plain_view import view
from tidegate.redaction.detectors.iban import SIZES
from tidegate.redaction.detectors.key_formats import FORMATS

_LATIN = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u036f\u1e00-\u1eff"
_LOCAL = re.compile(rf"[{_LATIN}0-9_][{_LATIN}0-9._%+'~\-@]*\Z")
_DOMAIN = re.compile(
    rf"(?![0-9]+\.[0-9]+\.)(?![A-Za-z]+\.(?i:utf-?8|iso-?8859|koi8|euc)\b)"
    rf"(?:[{_LATIN}0-9\-]+\.)+[{_LATIN}][{_LATIN}0-9\-]*[{_LATIN}0-9]"
)
_KEYS = [re.compile(rf"(?<![A-Za-z0-9]){form.pattern}") for form in FORMATS]
_JWT = re.compile(
    r"(?<![A-Za-z0-9])(?:eyJ|ZXlK)(?:[A-Za-z0-9_\-]{10,}\.{1,2}[A-Za-z0-9_\-]{10,}"
    r"|[A-Za-z0-9_\-]{200,})(?:\.{1,2}[A-Za-z0-9_\-]+)*"
)
_SSN_CUE = re.compile(r"(?i:\bssn\b|social[ \-]security)[^0-9\n]{0,32}\n?\Z")
_SSN_BARE = re.compile(
    r"(?<![A-Za-z0-9])(?<![0-9]\.)(?!000|666|9)[0-9]{3}(?!00)[0-9]{2}(?!0000)[0-9]{4}"
    r"(?![A-Za-z0-9])(?!\.[0-9])"
)
_CARD_CUE = re.compile(
    r"(?i:\bcards?\b|\bcc\b|\b(?:visa|maestro|mastercard|amex|jcb|discover|unionpay)\b)"
    r"[^0-9\n]{0,24}\n?\Z"
)
_SSN = re.compile(
    r"(?<![A-Za-z0-9])(?<![0-9]\.)(?<![0-9]-)(?!000|666|9)[0-9]{3}[ \-](?!00)[0-9]{2}[ \-]"
    r"(?!0000)[0-9]{4}(?![A-Za-z0-9])(?!\.[0-9])(?!-[0-9])"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CARD_START = re.compile(r"(?<![A-Za-z0-9])(?<![0-9]\.)[0-9]")
_JOINED = r"[ .\n\-]"


def _luhn(digits: str) -> bool:
    doubled = [int(c) * (1 + i % 2) for i, c in enumerate(digits[::-1])]
    return sum(d // 10 + d % 10 for d in doubled) % 10 == 0


def _network(digits: str) -> bool:
    return len(digits) >= 13 and bool(
        re.fullmatch(
            r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}|3[47][0-9]{13}|6011[0-9]{12,15}|1800[0-9]{11}"
            r"|6(?:4[4-9]|5)[0-9]{13,17}|62[0-9]{14,17}|60[0-9]{14}|8[12][0-9]{14}|2131[0-9]{11}"
            r"|35(?:2[89]|[3-8][0-9])[0-9]{12,15}|3(?:0[0-59][0-9]{11,16}|[689][0-9]{12,17})"
            r"|220[0-4][0-9]{12,15}|(?:50|5[678]|63|67)[0-9]{11,17}"
            r"|(?:222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}",
            digits,
        )
    )


def _grouped(text: str, start: int, end: int) -> bool:
    number = text[start:end]
    sizes = [len(group) for group in re.split(_JOINED, number)]
    if "\n" in number:
        return all(size == 4 for size in sizes[:-1])
    # The end of another number before it, unless it is cut as cards are.
    joined = re.search(rf"[0-9]{_JOINED}$", text[:start])
    if joined and len(sizes) > 1 and sizes[:2] not in ([4, 4], [4, 6]):
        return False
    if all(size >= 3 for size in sizes[:-1]):
        return len(sizes) <= 6
    even = all(size == sizes[0] for size in sizes[:-1]) and sizes[-1] <= sizes[0] <= 2
    return even and not joined and not re.match(rf"{_JOINED}[0-9]", text[end:])


def _cards(text: str) -> list[tuple[int, int]]:
    uuids = [found.span() for found in _UUID.finditer(text)]
    cards: list[tuple[int, int]] = []
    for start in (found.start() for found in _CARD_START.finditer(text)):
        if cards and start < cards[-1][1]:
            continue
        cued = _CARD_CUE.search(text[max(0, start - 40) : start]) is not None
        for digits in range(19, 11, -1):
            found = re.compile(rf"[0-9](?:{_JOINED}?[0-9]){{{digits - 1}}}").match(text, start)
            if not found or re.match(r"[A-Za-z0-9]|\.[0-9]", text[found.end() :]):
                continue
            number = re.sub(_JOINED, "", found[0])
            if not (_luhn(number) and _grouped(text, *found.span()) and (cued or _network(number))):
                continue
            if any(low < found.end() and start < high for low, high in uuids):
                continue
            cards.append(found.span())
            break
    return cards


def _mails(text: str) -> list[tuple[int, int]]:
    mails: list[tuple[int, int]] = []
    for sign in re.finditer("@", text):
        floor = max(mails[-1][1] if mails else 0, sign.start() - 64)
        local = _LOCAL.search(text[floor : sign.start()])
        domain = _DOMAIN.match(text, sign.end())
        if local and domain and local[0] != "git":
            mails.append((floor + local.start(), domain.end()))
    return mails


def _keys(text: str) -> list[tuple[int, int]]:
    """The first format that fits a place; none inside another."""
    keys: list[tuple[int, int]] = []
    for start in range(len(text)):
        if keys and start < keys[-1][1]:
            continue
        found = next((key.match(text, start) for key in _KEYS if key.match(text, start)), None)
        if found:
            keys.append(found.span())
    return keys


def _ssns(text: str) -> list[tuple[int, int]]:
    bare = [
        found.span()
        for found in _SSN_BARE.finditer(text)
        if _SSN_CUE.search(text[max(0, found.start() - 56) : found.start()])
    ]
    return [found.span() for found in _SSN.finditer(text)] + bare


def _ibans(text: str) -> list[tuple[int, int]]:
    ibans = []
    for head in re.finditer(rf"(?<![{_LATIN}0-9._%+@~\-])[A-Za-z]{{2}}[0-9]{{2}}", text):
        size = SIZES.get(head[0][:2].upper())
        if size is None:
            continue
        joint = r"(?:[ -]| ?\r?\n {0,4})?"
        groups = f"(?:[A-Za-z0-9]{{4}}{joint})" * ((size - 1) // 4)
        rest = f"[A-Za-z0-9]{{{(size - 1) % 4 + 1}}}(?![A-Za-z0-9])"
        found = re.compile(groups + rest).match(text, head.start())
        if found is None:
            continue
        compact = re.sub("[^A-Za-z0-9]", "", found[0]).upper()
        turned = compact[4:] + compact[:4]
        if int("".join(str(int(char, 36)) for char in turned)) % 97 == 1:
            ibans.append(found.span())
    return ibans


def mask(original: str) -> str:
    """`original` with every value of the six families replaced."""
    seen = view(original)
    text = "".join(each.char for each in seen)
    hits = [(*found.span(), 0, "SECRET") for found in _JWT.finditer(text)]
    hits += [(*span, 1, "SECRET") for span in _keys(text)]
    hits += [(*span, 2, "EMAIL") for span in _mails(text)]
    hits += [(*span, 3, "CARD") for span in _cards(text)]
    hits += [(*span, 4, "IBAN") for span in _ibans(text)]
    hits += [(*span, 5, "SSN") for span in _ssns(text)]
    chosen: list[tuple[int, int, str]] = []
    for start, end, _, word in sorted(hits, key=lambda hit: (hit[0], hit[2], -hit[1])):
        if chosen and start < chosen[-1][1]:
            head, stop, first = chosen[-1]
            chosen[-1] = (head, max(stop, end), first)
        else:
            chosen.append((start, end, word))
    out, place = [], 0
    for start, end, word in chosen:
        out += [original[place : seen[start].start], f"[REDACTED_{word}]"]
        place = seen[end - 1].end
    return "".join([*out, original[place:]])
