"""Is this the address or the key of a crypto wallet?

Lives here: Bitcoin and its relatives (Base58Check, Bech32), Ethereum (ERC-55), extended private
keys. Does not live here: the check sums (wallet_checks).
"""

import re
from collections.abc import Callable, Iterator

from tidegate.redaction.detectors.wallet_checks import base58check, bech32, eip55
from tidegate.redaction.hits import Hit
from tidegate.redaction.spans import WALLET

_B58 = "1-9A-HJ-NP-Za-km-z"
_BECH = "02-9ac-hj-np-z"
PATTERN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    rf"(?P<base58>(?:[132mnLMXD]|[tk][1-9])[{_B58}]{{25,34}})"
    rf"|(?P<wif>[5KLc9][{_B58}]{{50,51}})"
    rf"|(?P<extended>[xyzt]p(?:rv|ub)[{_B58}]{{107}})"
    rf"|(?P<bech32>(?:bc|tb|bcrt|ltc|addr)1[{_BECH}]{{11,98}}"
    rf"|(?:BC|TB|LTC)1[{_BECH.upper()}]{{11,87}})"
    r"|(?P<ethereum>0x[0-9A-Fa-f]{40})"
    r")(?![A-Za-z0-9])"
)
_CUE = re.compile(r"(?i:\beth\b|ether\w*|wallet|\baddress\b|\busdt\b|\berc-?20\b)[^\n]{0,32}\n?\Z")
_CUE_REACH = 64


def ethereum(address: str) -> bool:
    """Mixed case that checks; case of one kind carries no check, and then only a cue tells."""
    return address[2:] not in (address[2:].lower(), address[2:].upper()) and eip55(address)


_CHECKS: dict[str, Callable[[str], bool]] = {
    "base58": base58check,
    "wif": base58check,
    "extended": base58check,
    "bech32": bech32,
    "ethereum": ethereum,
}


class Wallets:
    """Addresses and private keys whose check sum is right."""

    family = "wallet"
    rank = 65
    shortest = 14
    anchors = (
        (_B58, rf"(?<![A-Za-z0-9].)[{_B58}]{{25}}"),
        ("1", r"(?:(?<=bc1)|(?<=tb1)|(?<=crt1)|(?<=tc1)|(?<=dr1)|(?<=BC1)|(?<=TB1)|(?<=TC1))"),
        ("x", "(?<=0x)[0-9A-Fa-f]{40}"),
    )

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for found in PATTERN.finditer(text, start, end):
            rule = found.lastgroup or self.family
            bare = rule == "ethereum" and _CUE.search(
                text, max(0, found.start() - _CUE_REACH), found.start()
            )
            if _CHECKS[rule](found[0]) or bare:
                yield Hit(found.start(), found.end(), self.family, rule, WALLET)
