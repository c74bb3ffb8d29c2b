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
# Random letters with which a provider hides the length of each event.
_PADDING = re.compile(rb'"obfuscation":"([A-Za-z0-9]{0,64})"')
_PADDING_ONLY = re.compile(rb"[A-Za-z0-9]{0,64}").fullmatch


@dataclass(frozen=True, slots=True)
class Template:
    """The bytes around the text, and the channel that the text belongs to.

    With padding, `after` goes from the text to the padding and `end` follows it; without, `end`
    is None.
    """

    before: bytes
    after: bytes
    end: bytes | None
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
        before, after = data[: colon.end()], data[text.end() - 1 :]
        padding = _PADDING.search(after)
        if padding:
            template = cls(before, after[: padding.start(1)], after[padding.end(1) :], feed)
        else:
            template = cls(before, after, None, feed)
        return template if template.text_of(data) == value else None

    def text_of(self, data: bytes) -> str | None:
        """The text of an event that fits; None if it does not fit."""
        before = self.before
        if not data.startswith(before):
            return None
        stop = self._stop(data)
        if stop < len(before):
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

    def _stop(self, data: bytes) -> int:
        """Where the text ends if the rest fits, else -1."""
        if self.end is None:
            return len(data) - len(self.after) if data.endswith(self.after) else -1
        if not data.endswith(self.end):
            return -1
        stop = data.rfind(self.after)
        padding = data[stop + len(self.after) : len(data) - len(self.end)]
        return stop if stop >= 0 and _PADDING_ONLY(padding) else -1

    def event(self, data: bytes, text: str) -> bytes:
        """The event `data`, which fits, with `text` in place of its own."""
        return self.before + quoted(text)[1:-1].encode() + data[self._stop(data) :]
