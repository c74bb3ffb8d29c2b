"""Does this URL begin with that one, for whoever may read it?

Lives here: the one spelling in which a URL is within a prefix, and the places that the readers
there are may go to with a text. Does not live here: the spelling in which URIs of resources are
compared (patterns), what follows for a condition (predicates) or for a resource (rules).

Sources: RFC 3986; WHATWG URL (what browsers and their libraries do); inet_aton(3).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Self
from urllib.parse import unquote

from tidegate.mcp.folding import fold
from tidegate.mcp.patterns import MAX_VALUE_CHARS, canonical_uri, loose_uris

# One letter is a drive: C://data.
_PARTS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?#]*)(.*)", re.DOTALL)
_ENDS: Final = (re.compile(r"[/?#]"), re.compile(r"/"))
"""Where a host ends; a user's name with a `?` or `#` in it was one once."""
_PORT: Final = re.compile(r"(\[[^\]]*\]|[^:]*)(?::(.*))?", re.DOTALL)
_PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
# A name, which no address ends like, and no user, nor what was one once.
_PLAIN: Final = re.compile(
    r"[a-z]+://(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*(?::[1-9][0-9]*)?(?:[/?#][^@]*)?", re.DOTALL
)
_MOST_CHARS: Final = 2 * MAX_VALUE_CHARS
_MOST_REMEMBERED: Final = 16
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")


@dataclass(frozen=True, slots=True)
class UrlPrefix:
    """What URLs may begin with. `starts` are its spellings among the places of a text."""

    text: str
    scheme: str
    starts: tuple[str, ...]
    has_host: bool

    @staticmethod
    def is_one(text: str) -> bool:
        """Whether a text is a prefix of URLs rather than of paths."""
        return _PARTS.fullmatch(text) is not None

    @classmethod
    def of(cls, text: str) -> Self | None:
        """The prefix; None if it is not one in a spelling that every reader takes alike."""
        match = _PARTS.fullmatch(canonical_uri(text) or "")
        if match is None:
            return None
        scheme, authority, tail = match.groups()
        plain = match.group()
        if scheme == "file":
            plain = f"file:///{(authority + tail).lstrip('/')}"
        spelled = {plain, unquote(plain)}
        if tail and scheme != "file":
            spelled |= _spelled(scheme, authority, {tail, unquote(tail)})
        return cls(text, scheme, tuple(sorted(map(fold, spelled))), bool(tail))

    def holds(self, url: str) -> bool:
        """Whether every reader finds the URL within: only if it is spelled like the prefix."""
        if not url.startswith(self.text) or canonical_uri(url) is None:
            return False
        # A user's name hides the host behind the prefix of another one.
        match = _PARTS.fullmatch(url)
        return match is not None and ("@" in self.text or "@" not in match[2])

    def may_hold(self, text: str) -> bool:
        """Whether some reader may find the text within, also one that grows when it is folded.

        Cost: some hundred spellings at most, each linear.
        """
        folded = fold(text)
        if len(folded) > _MOST_CHARS:
            return True
        places = _places(folded, self.scheme, with_scheme=self.has_host)
        return any(place.startswith(self.starts) for place in places)


def places_beside(uri: str) -> frozenset[str]:
    """Where readers may go with a canonical URI of the web whose host is not plain to see.

    Folded, for deny rules; empty if there is no doubt. Cost: as may_hold, else one look.
    """
    scheme = uri.partition(":")[0]
    if scheme not in _PORTS or _PLAIN.fullmatch(uri):
        return frozenset()
    return _places(fold(uri), scheme, with_scheme=False)


@lru_cache(_MOST_REMEMBERED)
def _places(folded: str, scheme: str, *, with_scheme: bool) -> frozenset[str]:
    """Where a text may lead. Remembered, since every deny rule asks about the same one.

    `with_scheme`: to the readers, too, that put the scheme in front where they find none.
    """
    readings = {folded, fold(unquote(folded))}
    named = f"{scheme}:"
    rests = {each.removeprefix(named) for each in readings if each.startswith(named)}
    if with_scheme:
        rests |= readings
    found = set[str]()
    for rest in {rest.replace("\\", "/") for rest in rests}:
        found |= _in_files(rest) if scheme == "file" else _anywhere(scheme, rest.lstrip("/"))
    return frozenset(found)


def _anywhere(scheme: str, rest: str) -> set[str]:
    """The places of what follows a scheme and its slashes, however many those are."""
    found = set[str]()
    for end in _ENDS:
        match = end.search(rest)
        at = len(rest) if match is None else match.start()
        authority, tail = rest[:at], rest[at:]
        # There should be one user's name at most; who cuts elsewhere finds another host.
        pieces = authority.split("@")
        hosts = {authority, pieces[-1], "@".join(pieces[1:]), *pieces[1:2]}
        tails = _tails("http://h", tail)
        for host in hosts - {""}:
            found |= _spelled(scheme, host, tails)
    return found


def _spelled(scheme: str, authority: str, tails: Iterable[str]) -> set[str]:
    user, at, host = authority.rpartition("@")
    hosts = _hosts(scheme, host)
    return {
        f"{scheme}://{user}{at}{each}{'' if tail.startswith('/') else '/'}{tail}"
        for each in hosts
        for tail in tails
    }


def _in_files(rest: str) -> set[str]:
    """A file's host is the first folder to some, and nothing to others."""
    ways = {rest.lstrip("/")}
    if rest.startswith("//") and not rest.startswith("///"):
        ways.add(rest[2:].partition("/")[2])
    return {f"file://{tail}" for way in ways for tail in _tails("file://", f"/{way}")}


def _tails(origin: str, tail: str) -> set[str]:
    """What may be read in what follows the host: decoded, with its dot steps, and gone where they
    lead; each as careless readers take it behind an `origin` of the kind."""
    tail = fold(unquote(tail)).replace("\\", "/")
    at = min((at for at in map(tail.find, "?#") if at >= 0), default=len(tail))
    path, rest = tail[:at] or "/", tail[at:]
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            steps = steps[:-1]
        elif step not in ("", "."):
            steps.append(step)
    end = "/" if steps and path.rpartition("/")[2] in ("", ".", "..") else ""
    ways = {path + rest, f"/{'/'.join(steps)}{end}{rest}"}
    loose = set[str]().union(*(loose_uris(origin + way) for way in ways))
    return ways | {each.removeprefix(origin) for each in loose}


def _hosts(scheme: str, host: str) -> set[str]:
    """A host in each spelling it stands for, with its port unless that is the usual one."""
    match = _PORT.fullmatch(fold(unquote(host)))
    if match is None:
        return {host}
    name, port = match[1].replace("\u3002", ".").rstrip("."), (match[2] or "").lstrip("0")
    shown = "" if port in ("", _PORTS.get(scheme)) else f":{port}"
    labels = ".".join(map(_label, name.split(".")))
    names = {name, fold(labels), _address(name, 8), _address(name, 10)}
    return {each + shown for each in names}


def _label(label: str) -> str:
    """A label of a host in its own letters."""
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


def _address(name: str, base: int) -> str:
    """A host that is an address in one spelling, the host as it is otherwise; a number that
    begins with a zero has `base`, about which readers disagree."""
    if name.startswith("["):
        try:
            six = IPv6Address(name[1:-1].partition("%")[0])
        except ValueError:
            return name
        return str(six.ipv4_mapped or f"[{six}]")
    parts = name.split(".")
    if len(parts) > len(IPv4Address(0).packed) or not all(map(_NUMBER.fullmatch, parts)):
        return name
    try:
        *firsts, last = (_number(part, base) for part in parts)
    except ValueError:
        return name
    value = last
    for place, number in enumerate(firsts):
        value += number << 8 * (3 - place)
    is_one = all(number < 1 << 8 for number in firsts) and last < 1 << 8 * (4 - len(firsts))
    return str(IPv4Address(value)) if is_one else name


def _number(digits: str, base: int) -> int:
    if digits.startswith("0x"):
        return int(digits[2:] or "0", 16)
    return int(digits, base if digits.startswith("0") else 10)


__all__ = ["UrlPrefix", "places_beside"]
