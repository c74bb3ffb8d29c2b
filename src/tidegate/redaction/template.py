"""Does this event differ from the one before in a single string?

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

_AWKWARD = re.compile(rb'["\\\x00-\x1f]')
_DECODE = json.JSONDecoder().decode


@dataclass(frozen=True, slots=True)
class Template:
    """The bytes before and after the text, and the channel that the text belongs to."""

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
        if data.count(name) != 1:
            return None
        found = re.compile(re.escape(name) + rb"[ \t\r\n]*:[ \t\r\n]*\"").search(data)
        end = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL).match(
            data, found.end() if found else 0
        )
        if found is None or end is None:
            return None
        template = cls(data[: found.end()], data[end.end() - 1 :], feed)
        return template if template.text_of(data) == value else None

    def text_of(self, data: bytes) -> str | None:
        """The text of an event that fits; None if it does not fit."""
        before, after = self.before, self.after
        if not (data.startswith(before) and data.endswith(after)):
            return None
        stop = len(data) - len(after)
        if stop < len(before):
            return None
        body = data[len(before) : stop]
        try:
            if _AWKWARD.search(body) is None:
                return body.decode()
            text = _DECODE(f'"{body.decode()}"')
        except ValueError:
            return None
        return text if isinstance(text, str) else None

    def event(self, text: str) -> bytes:
        """The event with `text` in place of its own."""
        return self.before + quoted(text)[1:-1].encode() + self.after
