"""Does the check digit of this number, or the check sum of this token, come out right?

Lives here: checks that several detectors share, and the names under which a configuration may ask
for them. Does not live here: what a value looks like (detectors), checks of one country
(detectors/national_checks). Every function takes the value without separators and answers False
for anything that it cannot read.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType

_PLAIN = bytes.maketrans(b"0123456789", bytes(range(10)))
# Twice the digit, its two digits added.
_DOUBLED = bytes.maketrans(b"0123456789", bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)))
_BASE36 = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_digits(text: str) -> bool:
    """At least one character, and all of them are 0 to 9."""
    return text.isascii() and text.isdigit()


def luhn(digits: str) -> bool:
    """The check digit of ISO/IEC 7812 is right."""
    if not is_digits(digits):
        return False
    plain, doubled = digits[-1::-2], digits[-2::-2]
    return (
        sum(plain.encode().translate(_PLAIN)) + sum(doubled.encode().translate(_DOUBLED))
    ) % 10 == 0


def luhn_sums(digits: str) -> tuple[list[int], list[int]]:
    """`luhn` for any part of `digits` without reading it again.

    `luhn(digits[a:b])` is `(s[b] - s[a]) % 10 == 0` for the sums `s` of the parity of `b`.
    """
    raw = digits.encode()
    plain, doubled = raw.translate(_PLAIN), raw.translate(_DOUBLED)
    even, odd = bytearray(plain), bytearray(doubled)  # every second one, from 0 or 1 on, as it is
    even[1::2], odd[1::2] = doubled[1::2], plain[1::2]
    return [*accumulate(odd, initial=0)], [*accumulate(even, initial=0)]


def mod97(compact: str) -> bool:
    """The check digits of ISO/IEC 7064, MOD 97-10, stand at the end. Letters in upper case."""
    if len(compact) < 3 or not _BASE36.issuperset(compact):
        return False
    return int("".join(str(int(char, 36)) for char in compact)) % 97 == 1


def iban(compact: str) -> bool:
    """The remainder of ISO 13616 is right. `compact` is upper case without spaces."""
    return len(compact) > 4 and mod97(compact[4:] + compact[:4])


def weighted(digits: str, weights: Sequence[int]) -> int:
    """The sum of the products of digits and weights; a weight that is too many counts nothing."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def ean13(digits: str) -> bool:
    """The check digit of an EAN-13 is right."""
    return (
        is_digits(digits)
        and len(digits) == 13
        and (weighted(digits, (1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1)) % 10 == 0)
    )


def mod11_10(digits: str) -> bool:
    """The check digit of ISO/IEC 7064, MOD 11,10, is right."""
    if not is_digits(digits) or len(digits) < 2:
        return False
    product = 10
    for digit in digits[:-1]:
        total = (product + int(digit)) % 10 or 10
        product = 2 * total % 11
    return (product + int(digits[-1])) % 10 == 1


def nhs(digits: str) -> bool:
    """A number of the National Health Service in England: ten digits, modulus 11."""
    return (
        is_digits(digits)
        and len(digits) == 10
        and weighted(digits, range(10, 1, -1)) % 11 == (11 - int(digits[9])) % 11
    )


# The dihedral group of order ten and the permutations of J. Verhoeff (1969).
_D5 = (
    "0123456789",
    "1234067895",
    "2340178956",
    "3401289567",
    "4012395678",
    "5987604321",
    "6598710432",
    "7659821043",
    "8765932104",
    "9876543210",
)
_PERMUTED = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)


def verhoeff(digits: str) -> bool:
    """The check digit of Verhoeff is right."""
    if not is_digits(digits):
        return False
    state = "0"
    for place, digit in enumerate(reversed(digits)):
        state = _D5[int(state)][int(_PERMUTED[place % 8][int(digit)])]
    return state == "0"


def base62_crc32(token: str) -> bool:
    """The last six characters are the CRC-32 of the thirty before them, in base 62.

    Source: the token formats that GitHub published in April 2021; npm uses the same.
    """
    body, tail = token[-36:-6], token[-6:]
    if len(body) != 30 or not token.isascii():
        return False
    rest, encoded = zlib.crc32(body.encode()), ""
    for _ in range(6):
        rest, digit = divmod(rest, 62)
        encoded = BASE62[digit] + encoded
    return encoded == tail


CHECKS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "base62_crc32": base62_crc32,
        "ean13": ean13,
        "iban": iban,
        "luhn": luhn,
        "mod11_10": mod11_10,
        "mod97": mod97,
        "nhs": nhs,
        "verhoeff": verhoeff,
    }
)
"""Checks by the names that `validate:` of a custom detector knows."""
