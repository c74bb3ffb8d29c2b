"""Is this an e-mail address?

Lives here: addresses as people write them in Latin letters, with or without accents, up to the
sizes of RFC 5321 (64 + 1 + 255, in characters). Does not live here: quoted local parts, addresses
in other scripts, addresses in words.
"""

import re
from collections.abc import Iterator

from tidegate.redaction.barriers import LATIN
from tidegate.redaction.detectors.email_others import names_a_thing
from tidegate.redaction.detectors.urls import stands_for_credentials
from tidegate.redaction.hits import RANKS, DottedRun, Hit
from tidegate.redaction.spans import EMAIL

_LOCAL_MAX = 64
_BEFORE_PASSWORD = frozenset(":$%")
_USER_REACH = 64
# An address at a relay (`user%40here@relay`) has two signs, and the whole of it is one.
_LOCAL_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+'~-@"
_BEFORE_LOCAL = re.compile(rf"(?s:.*)[^A-Za-z0-9._%+'~\-@{LATIN}]")
_NOT_FIRST = ".%+'~-@"
# Possessive repeats: a label is never split in another way, so time stays linear.
_LETTER = f"A-Za-z{LATIN}"
DOMAIN = re.compile(rf"(?:[{_LETTER}0-9\-]++\.)+[{_LETTER}][{_LETTER}0-9\-]*[{_LETTER}0-9]")
_SIGN = re.compile(rf"@(?=[{_LETTER}0-9\-])")
DOMAIN_RUN = DottedRun(re.compile(rf"(?:[{_LETTER}0-9\-]|\.(?=[{_LETTER}0-9\-]))*"))
# `package@1.2.3` and `sd_IN@devanagari.UTF-8` name no person.
_NO_DOMAIN = re.compile(r"[0-9]+\.[0-9]+\.|[A-Za-z]+\.(?i:utf-?8|iso-?8859|koi8|euc)\b")


class Email:
    """Local part, `@`, domain with at least one dot and a top level of letters."""

    family = "email"
    rank = RANKS["email"]
    shortest = 6
    anchors = (("@", ""),)

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        floor = start
        for sign in _SIGN.finditer(text, start, end):
            at = sign.start()
            domain = DOMAIN.match(text, at + 1, end)
            if domain is None or _NO_DOMAIN.match(text, at + 1, end):
                continue
            before = text[max(floor, at - _LOCAL_MAX) : at]
            local = _local_at_end(before).lstrip(_NOT_FIRST)
            if not local or local == "git":  # git@host:path names a repository, not a person
                continue
            head = at - len(local)
            if names_a_thing(text, local, at, domain.end(), end) or _example_in_url(text, head, at):
                continue
            floor = domain.end()
            yield Hit(head, domain.end(), self.family, "email", EMAIL, DOMAIN_RUN)


def _example_in_url(text: str, head: int, at: int) -> bool:
    """`https://user:password@host` in documentation is no address from `password` on."""
    if text[head - 1 : head] not in _BEFORE_PASSWORD:
        return False
    scheme = text.rfind("://", max(0, head - _USER_REACH), head)
    return scheme >= 0 and stands_for_credentials(text, scheme + 3, at)


def _local_at_end(before: str) -> str:
    """The characters of a local part that `before` ends in."""
    if before.isascii():
        return before[len(before.rstrip(_LOCAL_CHARS)) :]
    outside = _BEFORE_LOCAL.match(before)
    return before[outside.end() :] if outside else before
