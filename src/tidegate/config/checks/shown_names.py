"""Does a pattern mean what clients see, where rules and limits have the servers' own names?

Of several servers clients see `billing__refund` and `billing+file:///a`; a pattern that is written
so holds for nothing of that server. A deny then would let pass what it is there to stop, and is
refused; everything else that looks like it is a warning. Lives here: how such a pattern is found
out. Does not live here: how shown names are made and resolved (mcp.federation).

A server may call its own things so. Whoever means those writes `?` for a part of the separator;
what only looks like it needs no more than a word under `servers`, if only "*".
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.config.findings import Findings, join
from tidegate.config.globs import matches
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted
from tidegate.mcp.federation import SEPARATOR, token_of


@dataclass(frozen=True, slots=True)
class _Form:
    """How clients see the things of a kind: what stands behind the server, and its spelling.

    `aside` is a pattern that matches the separator and does not look like it.
    """

    separator: str
    spelled: Callable[[str], str]
    aside: str


# Case makes no difference to a deny, nor to whoever makes this mistake.
_NAME: Final = _Form(SEPARATOR, str.lower, "_?")
_URI: Final = _Form("+", token_of, "?")
_FORMS: Final = {"tools": _NAME, "prompts": _NAME, "resources": _URI}


@dataclass(frozen=True, slots=True)
class _Place:
    """A pattern and what it stands in. `servers`: those its rule speaks of, if it says which."""

    path: Path
    pattern: str
    form: _Form
    holder: str
    servers: Sequence[str]
    denies: bool = False


@dataclass(frozen=True, slots=True)
class _Meant:
    """The servers whose shown names a pattern begins with, and what it says behind that.

    `written` if it is there letter by letter; `own` is None where a star may be more than that.
    """

    servers: tuple[str, ...]
    own: str | None
    written: bool = False


def check_shown_names(config: Config, findings: Findings) -> None:
    """Every pattern of tools, prompts and resources. A single server has its own names only."""
    check_rules(config, findings)
    for index, limit in enumerate(config.limits):
        match = limit.match
        path: Path = ("limits", index, "match", "tools")
        for number, pattern in enumerate(match.tools):
            place = _Place((*path, number), pattern, _NAME, "a limit", match.servers)
            _look(config, findings, place)


def check_rules(config: Config, findings: Findings) -> None:
    """Those of `mcp.rules`."""
    for place in _places(config):
        _look(config, findings, place)


def _places(config: Config) -> Iterator[_Place]:
    for index, rule in enumerate(config.mcp.rules):
        for effect, body in (("allow", rule.allow), ("deny", rule.deny)):
            if body is None:
                continue
            denies, servers = effect == "deny", body.servers or ()
            holder = "a deny" if denies else "an allow"
            for kind, form in _FORMS.items():
                for number, pattern in enumerate(getattr(body, kind) or ()):
                    path: Path = ("mcp", "rules", index, effect, kind, number)
                    yield _Place(path, pattern, form, holder, servers, denies)


def _look(config: Config, findings: Findings, place: _Place) -> None:
    names = tuple(config.mcp.servers)
    if len(names) < 2 or findings.touched(("mcp", "servers")):
        return
    meant = _meant(place.pattern, names, place.form)
    if meant is None:
        return
    if not meant.written:
        if not place.servers:
            findings.warn(place.path, *_unsure(findings, place, meant))
        return
    [server] = meant.servers
    speaks = not place.servers or any(matches(pattern, server) for pattern in place.servers)
    report = findings.error if place.denies and speaks else findings.warn
    report(place.path, *_certain(findings, place, server, meant.own or ""))


def _meant(pattern: str, servers: Sequence[str], form: _Form) -> _Meant | None:
    """What of the names that clients see it begins with; None if it is like a server's own."""
    text, separator = form.spelled(pattern), form.separator
    prefixes = [(server, form.spelled(server)) for server in servers]
    for server, prefix in prefixes:
        if text.startswith(prefix + separator):
            return _Meant((server,), pattern[len(prefix + separator) :], written=True)
    for cut in range(len(text)):
        if text.startswith(separator, cut):
            heads = tuple(server for server, prefix in prefixes if matches(text[:cut], prefix))
            if heads:
                return _Meant(heads, pattern[cut + len(separator) :])
    starred = tuple(separator[:length] + "*" for length in range(len(separator)))
    for server, prefix in prefixes:
        if text.startswith(prefix) and text[len(prefix) :].startswith(starred):
            return _Meant((server,), None)
    return None


def _certain(findings: Findings, place: _Place, server: str, own: str) -> tuple[str, str]:
    wrong = (
        f"{quoted(place.pattern)} is what clients see of {quoted(server)}; the names in "
        f"{place.holder} are the server's own, so it holds for nothing there"
    )
    if place.path in findings.references:
        return wrong, f"write the own name, with `servers: [{server}]`"
    form = place.form
    aside = place.pattern[: len(server)] + form.aside + own
    return wrong, (
        f"write {quoted(own or '*')} with `servers: [{server}]`, "
        f"or {quoted(aside)} if a server itself calls it so"
    )


def _unsure(findings: Findings, place: _Place, meant: _Meant) -> tuple[str, str]:
    whose = join(map(quoted, meant.servers))
    if meant.own is None:
        wrong = (
            f"{quoted(place.pattern)} means what servers themselves call so, and not everything "
            f"of the server {whose}"
        )
        return wrong, 'say under `servers` whose names are meant, if only ["*"]'
    wrong = (
        f"{quoted(place.pattern)} looks like what clients see of {whose}; the names in "
        f"{place.holder} are the servers' own"
    )
    if place.path in findings.references:
        return wrong, "write the own name, and under `servers` whose it is"
    own = quoted(meant.own or "*")
    return wrong, f'write {own}, or say under `servers` whose own names look so, if only ["*"]'


__all__ = ["check_rules", "check_shown_names"]
