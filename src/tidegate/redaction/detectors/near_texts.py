"""What looks like an address, a key or a password, and why is it none?

Lives here: for e-mail, keys, web tokens, private keys, URLs and keyword values the loose form at
which a person would stop, and why the detector does not. Only explanations ask, so an answer costs
what it costs. Does not live here: numbers (near_numbers).
"""

import re
from collections.abc import Iterator

from tidegate.redaction.detectors.email_others import names_a_thing
from tidegate.redaction.detectors.key_formats import FORMATS
from tidegate.redaction.detectors.near_numbers import Near

_EMAIL = re.compile(
    r"(?<![:/])(?<![^\s@<>()\[\],;:\"'])[^\s@<>()\[\],;:\"']*@[^\s@<>()\[\],;:\"']*"
)
_RELEASE = re.compile(r"v?[0-9]+\.[0-9]+")
_TOP = re.compile(r"[^0-9]{2,}|xn--.*")


def _names_a_thing(text: str, at: int, size: int) -> bool:
    local = text[max(0, at - 64) : at]
    return names_a_thing(text, local, at, at + 1 + size, len(text))


def near_emails(text: str) -> Iterator[Near]:
    """Whatever holds an `@`."""
    for found in _EMAIL.finditer(text):
        local, _, domain = found[0].partition("@")
        domain = domain.rstrip(".")
        if not local:
            reason = "nothing in front of the @"
        elif not domain:
            reason = "nothing behind the @"
        elif local == "git":
            reason = "git@ names a repository"
        elif _RELEASE.match(domain):
            reason = "the number of a release, or an address in numbers, stands behind the @"
        elif "." not in domain:
            reason = "no top level: the domain has no dot"
        elif not _TOP.fullmatch(domain.rpartition(".")[2]):
            reason = "the top level is not made of letters"
        elif _names_a_thing(text, found.start() + len(local), len(domain)):
            reason = "a file, a unit or a call: no mail is delivered under that top level"
        else:
            reason = "not the form of an address in Latin letters"
        yield *found.span(), reason


_PREFIXES = tuple(
    (form, re.compile(rf"(?<![A-Za-z0-9])({form.prefix})([A-Za-z0-9_\-]*)")) for form in FORMATS
)


def near_keys(text: str) -> Iterator[Near]:
    """The prefix of a key, whatever follows it."""
    seen = set()
    for _, pattern in _PREFIXES:
        for found in pattern.finditer(text):
            if found.start() in seen:
                continue
            seen.add(found.start())
            size = len(found[2])
            if size < 20:
                reason = f"prefix {found[1]} but only {size} characters behind it"
            else:
                reason = f"prefix {found[1]} but what follows is no key: too short or words"
            yield *found.span(), reason


_TOKEN = re.compile(r"(?<![A-Za-z0-9])(?:eyJ|ZXlK)[A-Za-z0-9_.\-]*")


def near_tokens(text: str) -> Iterator[Near]:
    """The letters at which a web token begins."""
    for found in _TOKEN.finditer(text):
        yield *found.span(), "begins like a web token, but no second part follows"


_ARMOR = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,48})-----")


def near_private_keys(text: str) -> Iterator[Near]:
    """The line that opens a block in armor."""
    for found in _ARMOR.finditer(text):
        if found[1].endswith(("PRIVATE KEY", "PRIVATE KEY BLOCK")):
            yield *found.span(), "an opening line, but nothing like a key follows it"
        else:
            yield *found.span(), "not a private key"


_AUTHORITY = re.compile(r"(?<=[A-Za-z0-9]://)([^\s/?#\"'<>\\`@]*)@")


def near_url_credentials(text: str) -> Iterator[Near]:
    """What stands in front of the `@` of a URL."""
    for found in _AUTHORITY.finditer(text):
        _, colon, password = found[1].partition(":")
        if not colon or not password:
            reason = "a user name without a password"
        else:
            reason = "a template, or what documentation writes in place of a password"
        yield *found.span(1), reason


_FOLLOWS = (
    r"\\{0,3}[\"'*`]{0,3}\]?[ \t]{0,32}[:=]{1,2}>?[ \t]{0,40}\\{0,3}[\"'`*]{0,3}([^\s\"'`<>*]+)"
)
_VALUE = re.compile(rf"(?i:(passw(?:or)?d|passphrase|passcode|pwd)|secret|token|key){_FOLLOWS}")
_AUTHORIZATION = re.compile(rf"(?i:authorization){_FOLLOWS}")
_TEMPLATE = re.compile(r"[$%{<\[(]|x{3}|your|none$|null$|true$|false$|undefined$", re.IGNORECASE)


def near_keyword_values(text: str) -> Iterator[Near]:
    """The word behind `password:` and the like."""
    for found in _VALUE.finditer(text):
        yield _no_secret(found.start(2), found[2], 6 if found[1] else 8)


def near_authorizations(text: str) -> Iterator[Near]:
    """The word behind `Authorization:`."""
    for found in _AUTHORIZATION.finditer(text):
        yield _no_secret(found.start(1), found[1], 8)


def _no_secret(start: int, word: str, least: int) -> Near:
    value = word.rstrip(".,;:)]}")
    if _TEMPLATE.match(value):
        reason = "a template or a placeholder, no value"
    elif len(value) < least:
        reason = f"{len(value)} characters; behind this word a secret has {least} or more"
    elif value.isalpha():
        reason = "letters only: more likely a word than a secret"
    else:
        reason = "more likely a name of code, a path or a count than a secret"
    return start, start + len(value), reason
