"""What looks like a number that detectors look for, and why is it none?

Lives here: for cards, SSN, IBAN, phones, network addresses, national numbers and wallets the loose
form at which a person would stop, and why the detector does not. Only explanations ask, so an
answer costs what it costs. Does not live here: words and keys (near_texts).
"""

import re
from collections.abc import Iterator

from tidegate.redaction.checksums import iban, luhn
from tidegate.redaction.detectors import cards, wallets
from tidegate.redaction.detectors.digits import (
    JOINERS,
    WORD,
    chains,
    ends_free,
    in_uuid,
    starts_free,
)
from tidegate.redaction.detectors.iban import SIZES
from tidegate.redaction.detectors.national import Row, rows
from tidegate.redaction.detectors.network import is_some_device, parsed
from tidegate.redaction.detectors.ssn import issued_ssn

Near = tuple[int, int, str]
"""Start, end and the reason; offsets in the folded text."""


def near_cards(text: str) -> Iterator[Near]:
    """Chains of thirteen digits and more; the long groups of one that is too long for a card."""
    for groups in chains(text, 0, len(text), least=12):
        whole = (groups[0][0], groups[-1][1])
        if in_uuid(text, *whole, len(text)):
            yield *whole, "part of a UUID"
            continue
        sizes = [end - start for start, end in groups]
        too_long = sum(sizes) > cards.MOST_DIGITS or max(sizes) >= cards.FEWEST_DIGITS
        for head, stop in groups if too_long else [whole]:
            number = "".join(filter(str.isdigit, text[head:stop]))
            if len(number) >= cards.FEWEST_DIGITS or (len(number) == 12 and luhn(number)):
                yield head, stop, _no_card(text, head, stop, number)


def _no_card(text: str, head: int, stop: int, number: str) -> str:
    size = f"{len(number)} digits"
    if len(number) > cards.MOST_DIGITS:
        return f"{size}, a card has 19 at most"
    if not starts_free(text, head) or not ends_free(text, stop, len(text)):
        return f"{size}, but a letter touches them or they are a decimal fraction"
    if not luhn(number):
        return f"{size}, Luhn check failed"
    if len(number) < cards.FEWEST_DIGITS or not cards.in_network(number):
        return (
            f"{size}, Luhn check right, but no card network issues such numbers: an order number"
            ' or the like (a word such as "card" before it would count)'
        )
    return f"{size}, Luhn check right, but they are not grouped like one number"


_SSN = re.compile(r"(?<![0-9])([0-9]{3})([ \-])([0-9]{2})\2([0-9]{4})(?![0-9])")
_NINE = re.compile(r"(?<![0-9])[0-9]{9}(?![0-9])")


def near_ssns(text: str) -> Iterator[Near]:
    """Three, two and four digits, and nine."""
    for found in _SSN.finditer(text):
        area, _, group, serial = found.groups()
        reason = "part of a longer number"
        if not issued_ssn(area, "01", "0001"):
            reason = "areas 000, 666 and from 900 on were never issued"
        elif not issued_ssn("001", group, serial):
            reason = "group 00 and serial 0000 were never issued"
        yield *found.span(), reason
    for found in _NINE.finditer(text):
        reason = 'nine digits without a word such as "SSN" shortly before'
        yield *found.span(), reason


_JOINT = r"(?:[ \-]| ?\r?\n {0,4})?"
_IBAN = re.compile(rf"(?<![A-Za-z0-9])([A-Za-z]{{2}})[0-9]{{2}}(?:{_JOINT}[A-Za-z0-9]){{8}}")


def near_ibans(text: str) -> Iterator[Near]:
    """Two letters, two digits, and at least eight characters more."""
    for found in _IBAN.finditer(text):
        size = SIZES.get(found[1].upper())
        if size is None:
            yield *found.span(), "no country whose account numbers begin like that"
            continue
        whole = re.compile(rf"(?:[A-Za-z0-9]{_JOINT}){{{size}}}").match(text, found.start())
        if whole is None:
            yield *found.span(), f"an account number of that country has {size} characters"
            continue
        stop = len(whole[0].rstrip(" -\r\n")) + whole.start()
        compact = re.sub(r"[ \-\r\n]", "", whole[0]).upper()
        reason = "the check digits (ISO 13616, modulus 97) are wrong"
        if iban(compact):
            reason = f"right for {size} characters, but it is not grouped so, or more follow"
        yield whole.start(), stop, reason


_PHONE = re.compile(r"(?<![A-Za-z0-9.])\+?\(?[0-9](?:[ .()/\-]{0,2}[0-9]){6,14}(?![A-Za-z0-9])")
_DATE = re.compile(r"[0-9]{1,4}([.\-/])[0-9]{1,2}\1[0-9]{1,4}")


def near_phones(text: str) -> Iterator[Near]:
    """Seven to fifteen digits with the signs that stand in telephone numbers."""
    for found in _PHONE.finditer(text):
        joined = text[found.end() : found.end() + 2]
        if _DATE.match(found[0]):
            reason = "reads like a date"
        elif joined[:1] in JOINERS and joined[1:] in WORD and joined[1:]:
            reason = "more follows: part of a longer number"
        else:
            reason = (
                "no calling code, not written as in a country that is looked for, and no word such"
                ' as "phone" beside it'
            )
        yield *found.span(), reason


_QUAD = re.compile(r"(?<![0-9.])[0-9]{1,4}(?:\.[0-9]{1,4}){3,}(?![0-9])")
_COLONS = re.compile(r"(?<![A-Za-z0-9:])[0-9A-Fa-f]{0,4}(?:::?[0-9A-Fa-f]{1,4}){2,}(?![A-Za-z0-9])")


def near_addresses(text: str) -> Iterator[Near]:
    """Four numbers or more with dots, and groups with colons."""
    for found in _QUAD.finditer(text):
        if found[0].count(".") > 3:
            reason = "more than four parts"
        elif parsed(found[0]) is None:
            reason = "a part above 255 or with a leading zero"
        else:
            reason = "counts releases or chapters, or a letter touches it"
        yield *found.span(), reason
    for found in _COLONS.finditer(text):
        yield *found.span(), "too few groups of an IPv6 address, or too many"


_MAC = re.compile(r"(?<![A-Za-z0-9:\-])[0-9A-Fa-f]{2}(?:[:\-][0-9A-Fa-f]{2}){3,}")


def near_macs(text: str) -> Iterator[Near]:
    """Four pairs of hexadecimal digits and more."""
    for found in _MAC.finditer(text):
        pairs = (len(found[0]) + 1) // 3
        if pairs != 6:
            reason = f"{pairs} pairs, a MAC address has 6"
        elif not is_some_device(found[0]):
            reason = "nobody's address, or everybody's"
        else:
            reason = "its pairs are not joined by one sign, or a letter touches it"
        yield *found.span(), reason


_ID = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]+(?:[ .+\-][A-Za-z0-9]+)*")
_ID_GROUP = re.compile(r"[A-Za-z0-9]+")
_MOST_GROUPS = 7


def near_national_ids(text: str) -> Iterator[Near]:
    """What has the layout of a number of the table."""
    by_size = rows(())
    for chain in _ID.finditer(text):
        groups = [found.span() for found in _ID_GROUP.finditer(text, *chain.span())]
        for first, (start, _) in enumerate(groups):
            for _, end in groups[first : first + _MOST_GROUPS]:
                written = text[start:end].upper()
                compact = re.sub(r"[ .+\-]", "", written)
                for row in by_size.get(len(compact), ()):
                    reason = _no_id(row, written, compact, cued=row.cued(text, start))
                    if reason:
                        yield start, end, f"{row.number.rule}: {reason}"


def _no_id(row: Row, written: str, compact: str, *, cued: bool) -> str | None:
    if not row.laid_out(written):
        return None
    if not row.checks(compact):
        return "the check digit is wrong" if cued else None
    country = row.number.country
    return f"counts only behind its word, or if {country} is named in `regions`"


def near_wallets(text: str) -> Iterator[Near]:
    """What has the form of an address or key of a wallet."""
    for found in wallets.PATTERN.finditer(text):
        reason = "the check sum is wrong"
        if found.lastgroup == "ethereum":
            reason = "no check sum in its capitals, and no word such as wallet before it"
        yield *found.span(), reason


_PASSPORT = re.compile(r"(?<![A-Za-z0-9])[A-Z]{1,2}[0-9]{6,8}(?![A-Za-z0-9])")


def near_passports(text: str) -> Iterator[Near]:
    """One or two capitals and six digits or more."""
    for found in _PASSPORT.finditer(text):
        yield *found.span(), "no word for a passport shortly before"
