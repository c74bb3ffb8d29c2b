"""Which names does this pattern mean, and is it safe to run?

Lives here: globs, the canonical form of a resource URI and what careless servers take it for, and
the check that keeps an operator's regular expression from taking for ever. Does not live here:
the folding that deny rules apply (folding), what a rule is made of (rules), who may do what
(authorize).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from tidegate.mcp.folding import compatible, is_invisible

MAX_VALUE_CHARS: Final = 1024
_MAX_URI_CHARS: Final = 2048
_MAX_STEPS: Final = 1 << 20
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//[^/?#]*)?([^?#]*)([?#].*)?")
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_PARTS_PATH: Final = re.compile(r"(%(?:2[Ff3]|3[Ff]))")
_PARTS_QUERY: Final = re.compile(r"(%23)")
_SLASHES: Final = re.compile(r"/{2,}")
_STEPS: Final = re.compile(r"[/?#]")
_STEPS_OF_FILE: Final = re.compile(r"[/?#&=;]")
_PARAMETERS: Final = re.compile(r";[^/]*")
_DEFAULT_PORTS: Final = MappingProxyType({"http": ":80", "https": ":443"})


class UnsafePattern(ValueError):
    """The pattern is broken or could take too long; `str()` says why, in our own words."""


def glob(pattern: str) -> Callable[[str], bool]:
    """A test for the whole of a text: `*` is any run of characters, `?` is one.

    Everything else stands for itself. Cost of a test: linear in the text for each star.
    """
    if pattern == "*":
        return lambda _text: True
    parts = [re.escape(part).replace(r"\?", ".") for part in re.split(r"\*+", pattern)]
    if len(parts) == 1:
        compiled = re.compile(parts[0], re.DOTALL)
    else:
        # Atomic: the leftmost place for a literal is as good as any, so a star never gives back.
        middle = "".join(f"(?>.*?{part})" for part in parts[1:-1])
        compiled = re.compile(f"{parts[0]}{middle}.*{parts[-1]}", re.DOTALL)
    return lambda text: compiled.fullmatch(text) is not None


def literal_prefix(pattern: str) -> str:
    """What every text that matches the glob begins with."""
    return re.split(r"[*?]", pattern, maxsplit=1)[0]


def _has_unseen(text: str) -> bool:
    """Whether any character is invisible. Cost: far less if all of them are ASCII."""
    if text.isascii():
        return not text.isprintable() or " " in text
    return any(map(is_invisible, text))


def canonical_uri(uri: str) -> str | None:
    """`uri` in the one spelling that rules compare; None if it must not be forwarded.

    Scheme and authority in lower case, a default port left out, percent escapes decoded, but not
    those of a sign that would part the URI there (a slash or `?` in its path, `#`): that is
    another name. A file of this host has an empty authority. Refused: no scheme, a scheme or
    authority outside of ASCII, blanks, invisible characters and backslashes (a blank may be
    written %20), broken or doubled escapes, and dot segments, also escaped, in other widths or
    with parameters, in the query and the fragment as well: no honest client sends them, and
    servers disagree about what they mean (some take all that follows the scheme for a path). So
    is one of more than 2,048 characters, also once its ligatures are. A file needs a path from
    the root. Sources: RFC 3986 sections 2.2 and 6.2, RFC 8089 section 2.
    """
    match = _URI.fullmatch(uri) if len(uri) <= _MAX_URI_CHARS else None
    if match is None or _has_unseen(uri):
        return None
    if uri.count("%") != len(_ESCAPE.findall(uri)):
        return None
    scheme, authority, path, rest = match.groups(default="")
    try:
        text = unquote(path, errors="strict") + unquote(rest, errors="strict")
        path, rest = _decoded(path, _PARTS_PATH), _decoded(rest, _PARTS_QUERY)
    except UnicodeDecodeError:
        return None
    scheme, authority = scheme.lower(), _plain_authority(scheme.lower(), authority.lower(), path)
    text = f"{scheme}:{authority}{text}"
    if len(spelled := compatible(text)) > _MAX_URI_CHARS:
        return None
    if "\\" in spelled or _ESCAPE.search(text) or _has_unseen(text.replace(" ", "")):
        return None
    if not (scheme + authority).isascii() or _has_dot_segment(text, scheme):
        return None
    if scheme == "file" and not path.startswith("/"):
        return None
    return f"{scheme}:{authority}{path}{rest}"


def _decoded(text: str, kept: re.Pattern[str]) -> str:
    """`text` decoded, but for the escapes that match. Raises UnicodeDecodeError."""
    pieces = kept.split(text)
    return "".join(
        each.upper() if kept.fullmatch(each) else unquote(each, errors="strict") for each in pieces
    )


def _plain_authority(scheme: str, authority: str, path: str) -> str:
    if scheme == "file" and authority in ("", "//localhost") and path.startswith("/"):
        return "//"
    return authority.removesuffix(_DEFAULT_PORTS.get(scheme, ":")).removesuffix(":")


def _has_dot_segment(plain: str, scheme: str) -> bool:
    text = compatible(plain).removeprefix(f"{scheme}:")
    # A query of the web may well say `path=../a`; one of a file says nothing.
    steps = (_STEPS_OF_FILE if scheme == "file" else _STEPS).split(text)
    return any(step.split(";")[0].strip() in (".", "..") for step in steps)


def loose_uris(plain: str) -> set[str]:
    """What careless servers may take a canonical URI for; deny rules look at each of them, too.

    NFKC; as it is, and with the escapes decoded that are left in it, before it is parted and
    after; without user, closing dot of the host, doubled slashes and the fragment; for a file also
    without host and query. What follows a semicolon may belong to the name or be parameters: of
    its step, of the last step only, or all the rest; and in a query it may be what `&` is. One for
    a URI without semicolons and escapes, at most thirty-nine.
    """
    spelled = {compatible(plain), compatible(unquote(plain))}
    ways = {_parts(text) for text in spelled}
    if (parts := _parts(plain)) is not None:
        path, query = (compatible(unquote(each)) for each in parts[2:])
        ways.add((*parts[:2], path, query))
    readings = {plain} if None in ways else set()
    return readings.union(*(_loosely(*way) for way in ways if way is not None))


def _parts(uri: str) -> tuple[str, str, str, str] | None:
    """Scheme, authority with its slashes, path, and query with its sign."""
    match = _URI.fullmatch(uri)
    if match is None:
        return None
    scheme, authority, path, rest = match.groups(default="")
    return scheme, authority, path, rest.partition("#")[0]


def _loosely(scheme: str, authority: str, path: str, query: str) -> set[str]:
    # Behind a host nothing and a slash are one path (RFC 3986, section 6.2.3).
    paths, queries = _path_readings(path or "/" if authority else path), _query_readings(query)
    if scheme == "file":
        host, queries = "//", {""}
    else:
        host = "//" + authority[2:].rpartition("@")[2].rstrip(".") if authority else ""
    readings = {f"{scheme}:{host}{path}{query}" for path in paths for query in queries}
    # Some cut everything off, whatever it is part of.
    return readings | {reading.partition(";")[0] for reading in readings}


def joined_by_ampersands(pattern: str) -> set[str]:
    """A glob of URIs as `loose_uris` spells queries, wherever in it the query may begin."""
    starts = (pattern.find("?"), len(literal_prefix(pattern)))
    return {pattern, *(pattern[:at] + pattern[at:].replace(";", "&") for at in starts if at >= 0)}


def without_parameters(path: str) -> str:
    """A path without what follows a semicolon in any of its steps."""
    return _PARAMETERS.sub("", path)


def _path_readings(path: str) -> set[str]:
    above, slash, last = path.rpartition("/")
    ways = (path, without_parameters(path), f"{above}{slash}{last.partition(';')[0]}")
    return {_SLASHES.sub("/", way) for way in ways}


def _query_readings(query: str) -> set[str]:
    return {query, query.replace(";", "&"), without_parameters(query)}


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """`pattern` for use with fullmatch on texts of at most MAX_VALUE_CHARS characters.

    A subset: literals, classes, `.`, groups, alternatives, `? * + {m,n}`, and the escapes d D w
    W s S n t and of punctuation (ASCII meaning). Raises UnsafePattern for anything else, for a
    repeat of what holds a repeat or alternatives, and when the repeats together could need more
    than a million steps.
    """
    scanner = _Scanner(pattern)
    shape = scanner.alternatives()
    if not scanner.at_end:
        raise UnsafePattern("a closing bracket without an opening one")
    if shape.steps > _MAX_STEPS:
        raise UnsafePattern("the repeats together could take too long")
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, OverflowError) as error:
        raise UnsafePattern("not a regular expression") from error


@dataclass(frozen=True, slots=True)
class _Shape:
    """How many ways a part can match at one place, and whether a repeat of it is dangerous."""

    steps: int = 1
    loose: bool = False


class _Scanner:
    """Reads the subset by recursive descent; nothing is executed."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_VALUE_CHARS:
            raise UnsafePattern("longer than 1024 characters")
        self._text = pattern
        self._at = 0
        self._depth = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def alternatives(self) -> _Shape:
        shapes = [self._sequence()]
        while self._take("|"):
            shapes.append(self._sequence())
        if len(shapes) == 1:
            return shapes[0]
        return _Shape(sum(shape.steps for shape in shapes), loose=True)

    def _sequence(self) -> _Shape:
        steps, loose = 1, False
        while not self.at_end and self._peek() not in "|)":
            part = self._repeat(self._atom())
            steps, loose = min(steps * part.steps, _MAX_STEPS + 1), loose or part.loose
        return _Shape(steps, loose)

    def _atom(self) -> _Shape:
        character = self._next()
        if character in "?*+{":
            raise UnsafePattern("a repeat of nothing")
        if character == "(":
            return self._group()
        if character == "[":
            self._class()
        elif character == "\\":
            self._escape()
        return _Shape()

    def _group(self) -> _Shape:
        if self._take("?") and not self._take(":"):
            raise UnsafePattern("look-around, flags and named groups are not allowed")
        self._depth += 1
        if self._depth > 16:
            raise UnsafePattern("groups nested too deeply")
        shape = self.alternatives()
        self._depth -= 1
        if not self._take(")"):
            raise UnsafePattern("an opening bracket without a closing one")
        return shape

    def _class(self) -> None:
        self._take("^")
        self._take("]")
        while self._peek() != "]":
            character = self._next()
            if character == "\\":
                self._escape()
            elif character == "[":
                raise UnsafePattern("write an opening square bracket in a class as \\[")
        self._next()

    def _escape(self) -> None:
        character = self._next()
        if character.isalnum() and character not in "dDwWsSnt":
            raise UnsafePattern("this escape is not allowed")

    def _repeat(self, part: _Shape) -> _Shape:
        match = _REPEAT.match(self._text, self._at)
        if match is None:
            if self._peek() == "{":
                raise UnsafePattern("write a literal brace as \\{")
            return part
        self._at = match.end()
        low, high = _bounds(match)
        if low == high <= 1:
            return part
        if part.loose:
            raise UnsafePattern("a repeat of something that holds a repeat or alternatives")
        if high < low:
            raise UnsafePattern("the bounds of a repeat are the wrong way round")
        return _Shape(high - low + 1, loose=True)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        character = self._peek()
        if not character:
            raise UnsafePattern("it ends too early")
        self._at += 1
        return character

    def _take(self, character: str) -> bool:
        found = self._peek() == character
        self._at += found
        return found


_REPEAT: Final = re.compile(r"(?:([?*+])|\{([0-9]{1,4})(?:(,)([0-9]{0,4}))?\})\??")


def _bounds(match: re.Match[str]) -> tuple[int, int]:
    sign, low, comma, high = match.groups()
    if sign is not None:
        return {"?": (0, 1), "*": (0, MAX_VALUE_CHARS), "+": (1, MAX_VALUE_CHARS)}[sign]
    least = int(low)
    if comma is None:
        return least, least
    return least, int(high) if high else max(least, MAX_VALUE_CHARS)


__all__ = [
    "MAX_VALUE_CHARS",
    "UnsafePattern",
    "canonical_uri",
    "compile_pattern",
    "glob",
    "joined_by_ampersands",
    "literal_prefix",
    "loose_uris",
    "without_parameters",
]
