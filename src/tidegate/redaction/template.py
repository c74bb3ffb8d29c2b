"""Does this event differ from an earlier one in a single text?

Lives here: the short way for streams, in which hundreds of events differ in their text alone.
Does not live here: what happens to the text. An event that fits has the same structure and the
same other fields as one that was read in full, so nothing in it needs to be read again.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tidegate.redaction.arguments import quoted

_AWKWARD = re.compile(rb'["\\\x00-\x1f]').search
_DECODE = json.JSONDecoder().decode
_STRING_REST = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_COLON = re.compile(rb'[ \t\r\n]*:[ \t\r\n]*"')


@dataclass(frozen=True, slots=True)
class Template:
    """The bytes around the text, and the channel that the text belongs to."""

    before: bytes
    after: bytes
    feed: Callable[[str], str]

    @classmethod
    def of(cls, data: bytes, field: str, value: str, feed: Callable[[str], str]) -> Self | None:
        """The template of an event whose one text is `value` under the key `field`.

        None if the key is not unique: then nothing says which of its places the text stands at.
        """
        # Inside a JSON string a quote is escaped, so this finds whole tokens only.
        name = b'"' + field.encode() + b'"'
        place = data.find(name)
        if place < 0 or data.find(name, place + 1) >= 0:
            return None
        colon = _COLON.match(data, place + len(name))
        text = _STRING_REST.match(data, colon.end()) if colon else None
        if colon is None or text is None:
            return None
        template = cls(data[: colon.end()], data[text.end() - 1 :], feed)
        return template if template.text_of(data) == value else None

    def text_of(self, data: bytes) -> str | None:
        """The text of an event that fits; None if it does not fit."""
        before, stop = self.before, len(data) - len(self.after)
        if stop < len(before) or not data.startswith(before) or not data.endswith(self.after):
            return None
        body = data[len(before) : stop]
        try:
            if _AWKWARD(body) is None:
                return body.decode()
            # A quote that is not escaped ends the string early, and then this is not one string.
            text = _DECODE(f'"{body.decode()}"')
        except ValueError:
            return None
        return text if isinstance(text, str) else None

    def event(self, text: str) -> bytes:
        """An event that fits, with `text` in it."""
        return self.before + quoted(text)[1:-1].encode() + self.after


_NUMBER = re.compile(rb'"sequence_number":([0-9]{1,15})(?=,)')


@dataclass(frozen=True, slots=True)
class NumberedTemplate:
    """A template of events that also differ in the number at `place`, before the text."""

    inner: Template
    place: int

    @classmethod
    def of(cls, data: bytes, field: str, value: str, feed: Callable[[str], str]) -> Self | None:
        """As `Template.of`; None also if there is no number before the text."""
        found = _NUMBER.search(data)
        if found is None:
            return None
        inner = Template.of(_blank(data, found), field, value, feed)
        if inner is None or found.end(1) > len(inner.before):
            return None
        return cls(inner, found.start(1))

    def read(self, data: bytes) -> tuple[str, int] | None:
        """Text and number of an event that fits; None if it does not fit."""
        found = _NUMBER.search(data)
        if found is None or found.start(1) != self.place:
            return None
        text = self.inner.text_of(_blank(data, found))
        return None if text is None else (text, int(found[1]))

    def event(self, text: str, number: int) -> bytes:
        """An event that fits, with this text and number."""
        event = self.inner.event(text)
        return b"%b%d%b" % (event[: self.place], number, event[self.place + 1 :])


def _blank(data: bytes, found: re.Match[bytes]) -> bytes:
    return b"%b0%b" % (data[: found.start(1)], data[found.end(1) :])
