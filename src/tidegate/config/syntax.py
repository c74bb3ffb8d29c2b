"""What did the author probably mean where the YAML itself breaks off?

Lives here: the translation of the parser's complaints into words for people who do not know
YAML's grammar. Does not live here: faults of meaning (wording, checks).
"""

import re

import yaml

from tidegate.config.places import Mark

Words = tuple[str, str]

_UNPRINTABLE = re.compile(
    "[^\\t\\n\\r\\x20-\\x7e\\x85\\xa0-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]"
)
_INDENT = "give all keys of one block the same number of spaces, two for each level"
_QUOTE = "put text with special characters in quotes"
_NO_OPENING = (
    "a bracket is closed that was never opened",
    "remove it, or open it before the value",
)
_NOTHING = ("a value is missing here", "write it; text with brackets or commas belongs in quotes")
_REFERENCE = ("a reference inside [ ] or { } needs quotes", 'write "${env:NAME}"')

# A part of the parser's complaint and the words for it; the first that is found counts.
_TABLE: tuple[tuple[str, Words], ...] = (
    ("scanning a directive", ("a line that begins with % is an instruction to YAML", _QUOTE)),
    ("incompatible YAML document", ("this %YAML version is not known", "remove the line")),
    (
        "expected alphabetic or numeric character",
        ("a bare * or & has a meaning of its own in YAML", 'write it in quotes: "*"'),
    ),
    ("tag handle", ("a bare ! has a meaning of its own in YAML", _QUOTE)),
    ("parsing a tag", ("a bare ! has a meaning of its own in YAML", _QUOTE)),
    (
        "mapping values are not allowed",
        ("a colon is not expected here", f"check the indentation, and {_QUOTE}"),
    ),
    (
        "sequence entries are not allowed",
        ("a list item is not expected here", "begin the list on a line of its own, below its key"),
    ),
    (
        "could not find expected ':'",
        ("this line is neither `key: value` nor a list item", "write `key: value`"),
    ),
    ("<block end>, but found ']'", _NO_OPENING),
    ("<block end>, but found '}'", _NO_OPENING),
    ("node content, but found ']'", _NO_OPENING),
    ("node content, but found '}'", _NO_OPENING),
    (
        "<block end>, but found '-'",
        ("a list item stands where a key is expected", "indent the list below its key"),
    ),
    (
        "<block end>, but found '<scalar>'",
        (
            "text goes on after its value has ended",
            "put the whole value in one pair of quotes; double a single quote inside: 'it''s'",
        ),
    ),
    ("<block end>", ("this line is indented differently from the ones above it", _INDENT)),
    ("<document start>", ("this line is indented less than the first one", _INDENT)),
    ("node content, but found ','", _NOTHING),
    (
        "node content, but found '<stream end>'",
        ("the file ends in the middle of a value", "close the bracket that is open"),
    ),
    (
        "expected ',' or ']'",
        ("a list opened with [ is not closed", "separate items by commas and end with ]"),
    ),
    (
        "expected ',' or '}'",
        ("a mapping opened with { is not closed", "separate pairs by commas and end with }"),
    ),
    (
        "unexpected end of stream",
        ("a quote is opened and never closed", "close it on the same line"),
    ),
    (
        "unexpected document separator",
        ("a quote is opened and never closed", "close it on the same line"),
    ),
    (
        "unknown escape character",
        ("a backslash in double quotes begins an escape", "use single quotes, or write \\\\"),
    ),
    (
        "escape sequence",
        ("an escape in double quotes is incomplete", "use single quotes, or write \\\\"),
    ),
    ("block scalar", ("this block of text is not indented below its key", _INDENT)),
)


def character_problem(text: str) -> tuple[Mark, Words] | None:
    """The first character that no text file should hold; None when all are fine."""
    if (odd := _UNPRINTABLE.search(text)) is None:
        return None
    code = f"U+{ord(odd.group()):04X}"
    return _place(text, odd.start()), (f"the control character {code} stands here", "remove it")


def syntax_problem(error: yaml.MarkedYAMLError, text: str) -> tuple[Mark, Words]:
    """Place and words for the point at which the parser gave up."""
    where = error.problem_mark or error.context_mark
    mark = Mark(where.line + 1, where.column + 1) if where is not None else Mark(1, 1)
    problem = f"{error.context or ''} {error.problem or ''}"
    line = _line(text, mark.line)
    if (tab := _tab_before(text, mark)) is not None:
        return tab, ("a tab indents this line", "indent with spaces; YAML does not allow tabs")
    if "cannot start any token" in problem:
        return mark, _odd_start(line[mark.col - 1 : mark.col])
    if line[mark.col - 2 : mark.col] == "${":
        return Mark(mark.line, mark.col - 1), _REFERENCE
    if line.lstrip(" {").startswith(":"):
        return mark, ("a key is missing before the colon", "write its name")
    for part, words in _TABLE:
        if part in problem:
            return _opening(error, mark, part), words
    return mark, ("this is not valid YAML", f"{_INDENT}; {_QUOTE}")


def _odd_start(char: str) -> Words:
    if char == "\t":
        return "a tab stands before the value", "write a space"
    return f"a value cannot begin with {char}", "put the value in quotes"


def _opening(error: yaml.MarkedYAMLError, mark: Mark, part: str) -> Mark:
    """Where the quote or bracket was opened, for faults the parser meets only at their end."""
    opened = error.context_mark
    if opened is not None and part.startswith(("expected ','", "unexpected")):
        return Mark(opened.line + 1, opened.column + 1)
    return mark


def _tab_before(text: str, mark: Mark) -> Mark | None:
    """The tab in the indentation of the line at fault, or of the one above it."""
    for number in (mark.line, mark.line - 1):
        line = _line(text, number)
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent:
            return Mark(number, indent.index("\t") + 1)
    return None


def _line(text: str, number: int) -> str:
    """Line `number` of `text`, counted as the parser counts; "" outside."""
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _place(text: str, offset: int) -> Mark:
    return Mark(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
