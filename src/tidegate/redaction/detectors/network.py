"""Is this the address of a computer in a network?

Lives here: IPv4, IPv6 and MAC addresses. Does not live here: host names.

Addresses that mean something else in every network (loopback, private, link-local, unspecified,
multicast) say nothing about a person. They are a family of their own, `ip_private`.
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from tidegate.redaction.detectors.digits import WORD
from tidegate.redaction.hits import Hit, Verdict
from tidegate.redaction.spans import IP, MAC

_QUAD = re.compile(
    r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][_.%+~/\-])[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
    r"(?![A-Za-z0-9]|[_.%+~\-][A-Za-z0-9])"
)
# Four numbers that count releases or chapters.
_COUNTED = re.compile(
    r"(?i:\bv|\bver(?:sion)?|\brelease|\bbuild|\bsections?|\bchapter|\bclause|\boid|\bpolicy"
    r"|\bfirmware|\bnode(?:\.?js)?(?: is)?(?: at)?)[ .:=]{0,3}\Z"
)
_COUNTED_REACH = 24
_PRIVATE = tuple(
    ip_network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "224.0.0.0/3",
        "::/127",
        "fc00::/7",
        "fe80::/10",
        "ff00::/8",
    )
)


def is_private(address: IPv4Address | IPv6Address) -> bool:
    """The address means something else in every network, or nothing at all."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    judged = mapped or address
    return any(judged.version == block.version and judged in block for block in _PRIVATE)


def parsed(text: str) -> IPv4Address | IPv6Address | None:
    """The address that `text` spells, or None."""
    try:
        return ip_address(text)
    except ValueError:
        return None


class IPv4Addresses:
    """Four numbers up to 255, without leading zeros, that count neither releases nor chapters."""

    rank = 90
    shortest = 7
    anchors = (("0-9", r"[0-9]{0,2}(?:\.[0-9]{1,3}){3}"),)

    def __init__(self, family: str = "ip", *, private: bool = False) -> None:
        self.family = family
        self._private = private

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for found in _QUAD.finditer(text, start, end):
            address = parsed(found[0])
            if address is None or is_private(address) is not self._private:
                continue
            head = found.start()
            if not _COUNTED.search(text, max(0, head - _COUNTED_REACH), head):
                yield Hit(head, found.end(), self.family, "ipv4", IP)


_RUN = re.compile(r"[0-9A-Fa-f:.]*")
_LONGEST = 45
_HEAD = re.compile(r"(?<![A-Za-z0-9])(?<![A-Za-z0-9]\.)[0-9A-Fa-f]{0,4}:\Z")
# The group before it, if it is one: then the address began there.
_GROUP_BEFORE = re.compile(r"(?<![A-Za-z0-9])[0-9A-Fa-f]{0,4}:\Z")
_SLICE = re.compile(r"[A-Za-z0-9_\])]\[\Z")


def spells_ipv6(text: str) -> bool:
    """Enough of it is there that neither a time nor a name of C++ looks the same."""
    groups = [group for group in text.split(":") if group]
    if "::" not in text:
        return len(groups) >= 7
    if text == "::1":
        return True
    longest = max(map(len, groups), default=0)
    return any(char.isdigit() for char in text) and (longest >= 3 or len(groups) >= 4)


class IPv6Addresses:
    """Eight groups, or fewer around `::`."""

    rank = 90
    anchors = ((":", "(?<![G-Zg-z_]:)"),)

    def __init__(self, family: str = "ip", *, private: bool = False) -> None:
        self.family = family
        self._private = private

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        found = _HEAD.search(text, max(start, stop - 5), stop) if text[stop - 1] == ":" else None
        if found is None:
            return None
        place = found.start()
        if _GROUP_BEFORE.search(text, max(0, place - 6), place):
            return None
        return None if _SLICE.search(text, max(0, place - 2), place) else place

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        found = _RUN.match(text, start, min(end, start + _LONGEST + 2))
        stop = found.end() if found else start
        if stop == end and not ended and stop - start <= _LONGEST:
            return Verdict.WAIT
        written = text[start:stop].rstrip(".")
        if written[-1:] == ":" and written[-2:] != "::":
            written = written[:-1]
        stop = start + len(written)
        if stop - start > _LONGEST or not spells_ipv6(written) or text[stop:end][:1] in WORD:
            return Verdict.TEXT
        address = parsed(written)
        if address is None or is_private(address) is not self._private:
            return Verdict.TEXT
        return Hit(start, stop, self.family, "ipv6", IP)


_HEX = frozenset("0123456789ABCDEFabcdef")
_DASHED = re.compile(
    r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][.\-])"
    r"(?:[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2})"
    r"(?![A-Za-z0-9]|[.\-][0-9A-Fa-f])"
)
_MAC_HEAD = re.compile(r"(?<![A-Za-z0-9])(?<![A-Za-z0-9]-)[0-9A-Fa-f]{2}:\Z")
_PAIR_BEFORE = re.compile(r"(?<![A-Za-z0-9])[0-9A-Fa-f]{2}:\Z")
_MAC_SIZE = 17
# Behind these words pairs of decimal digits are a time.
_TIME = re.compile(r"(?i:\b(?:time(?:stamp|code)?|clock|duration|elapsed))[^0-9\n]{0,8}\Z")
_TIME_REACH = 24


def is_some_device(written: str) -> bool:
    """Neither nobody's address (all zero) nor everybody's (all ones)."""
    return len(set(written.upper()) & _HEX) > 1


class MacAddresses:
    """Six pairs of hexadecimal digits joined by colons or hyphens, or three groups of four."""

    family = "mac"
    rank = 95
    shortest = 14
    anchors = (
        (":", "(?<=[0-9A-Fa-f]{2}:)"),
        (r"\-", r"(?<=[0-9A-Fa-f]{2}-)[0-9A-Fa-f]{2}-"),
        (r"\.", r"(?<=[0-9A-Fa-f]{4}\.)[0-9A-Fa-f]{4}\."),
    )

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for found in _DASHED.finditer(text, start, end):
            if is_some_device(found[0]):
                yield Hit(found.start(), found.end(), self.family, "mac", MAC)

    def opens(self, text: str, start: int, stop: int) -> int | None:
        """See `SpanningDetector`."""
        found = _MAC_HEAD.search(text, max(start, stop - 3), stop)
        if found is None or _PAIR_BEFORE.search(text, max(0, found.start() - 4), found.start()):
            return None
        return found.start()

    def decide(self, text: str, start: int, end: int, *, ended: bool) -> Hit | Verdict:
        """See `SpanningDetector`."""
        written = text[start : min(end, start + _MAC_SIZE)]
        if any(
            char != ":" if place % 3 == 2 else char not in _HEX
            for place, char in enumerate(written)
        ):
            return Verdict.TEXT
        after = text[start + _MAC_SIZE : min(end, start + _MAC_SIZE + 2)]
        if not ended and (not after or after == ":"):
            return Verdict.WAIT
        if len(written) < _MAC_SIZE or after[:1] in WORD or not is_some_device(written):
            return Verdict.TEXT
        if after[:1] == ":" and after[1:] in _HEX:
            return Verdict.TEXT
        if written.replace(":", "").isdecimal() and _TIME.search(
            text, max(0, start - _TIME_REACH), start
        ):
            return Verdict.TEXT
        return Hit(start, start + _MAC_SIZE, self.family, "mac", MAC)
