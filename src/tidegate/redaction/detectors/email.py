"""Is this an e-mail address?

Lives here: addresses as people write them in Latin letters, with or without accents, up to the
sizes of RFC 5321 (64 + 1 + 255, in characters). Does not live here: quoted local parts, addresses
in other scripts, addresses in words.
"""

import re
from collections.abc import Iterator

from tidegate.redaction.barriers import LATIN
from tidegate.redaction.hits import RANKS, DottedRun, Hit
from tidegate.redaction.spans import EMAIL

_LOCAL_MAX = 64
_LOCAL_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+'~-"
_BEFORE_LOCAL = re.compile(rf"(?s:.*)[^A-Za-z0-9._%+'~\-{LATIN}]")
_NOT_FIRST = ".%+'~-"
_AT = re.compile(r"@|%40")
# Possessive repeats: a label is never split in another way, so time stays linear.
_LETTER = f"A-Za-z{LATIN}"
_DOMAIN = re.compile(rf"(?:[{_LETTER}0-9\-]++\.)+[{_LETTER}][{_LETTER}0-9\-]*[{_LETTER}0-9]")
_DOMAIN_RUN = DottedRun(re.compile(rf"(?:[{_LETTER}0-9\-]|\.(?=[{_LETTER}0-9\-]))*"))
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.")


class Email:
    """Local part, `@` or `%40`, domain with at least one dot and a top level of letters."""

    family = "email"
    rank = RANKS["email"]
    shortest = 6
    anchors = (("@", ""), ("%", "40"))

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        floor = start
        for at in _AT.finditer(text, start, end):
            before = text[max(floor, at.start() - _LOCAL_MAX) : at.start()]
            local = _local_at_end(before).lstrip(_NOT_FIRST)
            if not local or local == "git":  # git@host:path names a repository, not a person
                continue
            domain = _DOMAIN.match(text, at.end(), end)
            if domain is None or _VERSION.match(text, at.end(), end):
                continue
            head = at.start() - len(local)
            if at[0] == "@":  # user%40here@relay is one address, so `%40` ends nothing
                floor = domain.end()
            yield Hit(head, domain.end(), self.family, "email", EMAIL, _DOMAIN_RUN)


def _local_at_end(before: str) -> str:
    """The characters of a local part that `before` ends in."""
    if before.isascii():
        return before[len(before.rstrip(_LOCAL_CHARS)) :]
    outside = _BEFORE_LOCAL.match(before)
    return before[outside.end() :] if outside else before
