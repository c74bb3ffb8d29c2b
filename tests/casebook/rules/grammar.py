"""How does a sentence of `expect.assert` become checks?

    sentence    = clause { ";" clause }
    clause      = scope ":" clause | clause "in all N" | alternative
    alternative = conjunct { "or" conjunct }          judged for each exchange by itself
    conjunct    = leaf { "," | "and" | "with" leaf }
    leaf        = a pattern of the rule library; words in parentheses may be left out

A longer match wins: a pattern that covers the whole text is tried before the text is split.
Lives here: this grammar. Does not live here: the patterns and what they check (the rule modules),
which exchanges a scope names (scopes).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tests.casebook.seen import Exchange, Mismatch, Reply, Seen


@dataclass(frozen=True)
class View:
    """What a clause speaks about: all that was seen, and the part in question."""

    seen: Seen
    exchanges: tuple[Exchange, ...] = ()
    replies: tuple[Reply, ...] = ()
    narrowed: bool = False

    @classmethod
    def of(cls, seen: Seen) -> "View":
        """Everything."""
        return cls(seen, tuple(seen.everything), tuple(seen.talk.replies))

    def only(self, exchanges: Sequence[Exchange]) -> "View":
        """The same with these exchanges."""
        return replace(self, exchanges=tuple(exchanges), narrowed=True)

    def replying(self, replies: Sequence[Reply]) -> "View":
        """The same with these replies."""
        return replace(self, replies=tuple(replies), narrowed=True)


Judge = Callable[[View, re.Match[str]], None]
Narrow = Callable[[View, re.Match[str]], View]


@dataclass(frozen=True)
class Rule:
    """A pattern for a whole leaf and what it checks; `kinds` are the kinds of case it is for."""

    name: str
    pattern: str
    judge: Judge
    kinds: tuple[str, ...] = ("http", "llm", "mcp", "stdio")


@dataclass(frozen=True)
class Scope:
    """A pattern for the words before a colon, and the part of the view they name."""

    pattern: str
    narrow: Narrow
    kinds: tuple[str, ...] = ("http", "llm", "mcp", "stdio")


@dataclass(frozen=True)
class Library:
    """All rules and scopes."""

    rules: tuple[Rule, ...]
    scopes: tuple[Scope, ...]


class Node(Protocol):
    """Part of a sentence that can be judged."""

    def judge(self, view: View) -> None:
        """Raises Mismatch."""

    def rules(self) -> Iterator[Rule]:
        """The rules in use."""


@dataclass(frozen=True)
class Leaf:
    """One rule with its match."""

    rule: Rule
    match: re.Match[str]

    def judge(self, view: View) -> None:
        """Raises Mismatch."""
        self.rule.judge(view, self.match)

    def rules(self) -> Iterator[Rule]:
        """The rule."""
        yield self.rule


@dataclass(frozen=True)
class Every:
    """All parts must hold."""

    parts: tuple[Node, ...]

    def judge(self, view: View) -> None:
        """Raises Mismatch."""
        for part in self.parts:
            part.judge(view)

    def rules(self) -> Iterator[Rule]:
        """The rules in use."""
        for part in self.parts:
            yield from part.rules()


@dataclass(frozen=True)
class Either:
    """One part must hold: for each exchange by itself, or for the whole."""

    parts: tuple[Node, ...]

    def judge(self, view: View) -> None:
        """Raises Mismatch."""
        if len(view.exchanges) > 1:
            for exchange in view.exchanges:
                self._any(view.only([exchange]))
        else:
            self._any(view)

    def rules(self) -> Iterator[Rule]:
        """The rules in use."""
        for part in self.parts:
            yield from part.rules()

    def _any(self, view: View) -> None:
        faults = []
        for part in self.parts:
            try:
                part.judge(view)
            except Mismatch as fault:
                faults.append(str(fault))
            else:
                return
        raise Mismatch(" / ".join(dict.fromkeys(faults)))


@dataclass(frozen=True)
class Scoped:
    """A clause about a part."""

    scope: Scope
    match: re.Match[str]
    inner: Node

    def judge(self, view: View) -> None:
        """Raises Mismatch."""
        part = self.scope.narrow(view, self.match)
        if not part.exchanges and not part.replies:
            raise Mismatch(f"nothing was seen of {self.match[0]!r}")
        self.inner.judge(part)

    def rules(self) -> Iterator[Rule]:
        """The rules in use."""
        yield from self.inner.rules()


_QUANTIFIER = (
    r"(?:(?:so |but |and |then |that is,? )?(?:each|every one|every request|all of them|it)"
    r"(?: of them)?(?: is| are)?:? )?(?:either )?"
)
_SUFFIX = (
    r"(?P<rest>.+?),? (?P<scope>in (?:all|both|each|every|the (?:first|second|third|last)|(?:first"
    r"|second|third|last))\b[^,;()]*)"
)
_LABELED = r"(?P<scope>\(\w\)) (?P<rest>.+)"
_SUBJECT = (
    r"(?:the )?(?:client|answer|response|reply|caller|request|headers?|result)(?:'s)?"
    r"(?: (?:is|are|gets?|sees|receives|has|have))?(?: an?)? "
)
_LEADING_ALL = (
    r"(?P<scope>in (?:all|each|every|both|no)(?: \w+)? (?:variants?|cases?|requests?|answers?)),?"
    r" (?P<rest>.+)"
)
_LEADING_ROLE = r"(?P<scope>(?:the )?(?:viewer|admin)) (?:gets|sees|is|has) (?P<rest>.+)"
_LEADING = (
    r"(?P<scope>\d+ to \d+|\d+(?:, \d+)* and \d+) (?P<rest>(?:pass|are|is|get|come|reach|answer).+)"
)
_SESSION = r"(?P<first>.+?),? or,? for a session at (?P<version>[0-9-]+),? (?P<second>.+)"
SESSION_VERSION = "2025-06-18"


class Parser:
    """Parses sentences for one kind of case."""

    def __init__(self, library: Library, kind: str) -> None:
        self._rules = [
            (rule, re.compile(rule.pattern, re.IGNORECASE | re.DOTALL))
            for rule in library.rules
            if kind in rule.kinds
        ]
        self._scopes = [
            (scope, re.compile(scope.pattern, re.IGNORECASE | re.DOTALL))
            for scope in library.scopes
            if kind in scope.kinds
        ]
        self._memo: dict[str, Node | None] = {}

    def parse(self, sentence: str) -> Node | None:
        """The checks of a sentence; None if any part of it has no rule."""
        text = " ".join(sentence.split()).strip(" .,;:")
        if '"' not in text:
            text = re.sub(r"\b(?:downstream|fake server)\b", "upstream", text)
        if text not in self._memo:
            self._memo[text] = None  # guards against a text that reduces to itself
            self._memo[text] = self._parse(text)
        return self._memo[text]

    def _parse(self, text: str) -> Node | None:
        if not text:
            return None
        for attempt in (self._leaf, self._session, self._parts, self._scoped, self._bare):
            node = attempt(text)
            if node is not None:
                return node
        for separator, kind in _CLAUSES:
            node = self._split(text, separator, kind)
            if node is not None:
                return node
        plain = without_remarks(text)
        return self.parse(plain) if plain != text else None

    def _leaf(self, text: str) -> Node | None:
        for rule, pattern in self._rules:
            match = pattern.fullmatch(text)
            if match is not None:
                return Leaf(rule, match)
        return None

    def _session(self, text: str) -> Node | None:
        match = re.fullmatch(_SESSION, text)
        if match is None:
            return None
        return self.parse(
            match["second"] if match["version"] == SESSION_VERSION else match["first"]
        )

    def _parts(self, text: str) -> Node | None:
        return self._split(text, "; or ", Either) or self._split(text, "; (?:and )?", Every)

    def _scoped(self, text: str) -> Node | None:
        for cut in _outside(text, r": "):
            node = self._within(text[: cut.start()], text[cut.end() :])
            if node is not None:
                return node
        for form in (_LABELED, _LEADING, _LEADING_ALL, _LEADING_ROLE):
            leading = re.fullmatch(form, text)
            if leading is not None:
                node = self._within(leading["scope"], leading["rest"])
                if node is not None:
                    return node
        suffix = re.fullmatch(_SUFFIX, without_remarks(text))
        return self._within(suffix["scope"], suffix["rest"]) if suffix else None

    def _within(self, words: str, rest: str) -> Node | None:
        for scope, pattern in self._scopes:
            match = pattern.fullmatch(words.strip()) or pattern.fullmatch(without_remarks(words))
            if match is not None:
                inner = self.parse(rest)
                if inner is not None:
                    return Scoped(scope, match, inner)
        return None

    def _bare(self, text: str) -> Node | None:
        for words in (_QUANTIFIER, r"(?:both|all|then|also|and|but|with) ", _SUBJECT):
            plain = re.sub(f"^{words}", "", text, flags=re.IGNORECASE)
            node = self.parse(plain) if plain and plain != text else None
            if node is not None:
                return node
        return None

    def _split(self, text: str, separator: str, kind: type["Every | Either"]) -> Node | None:
        for cut in _outside(text, separator):
            before, after = text[: cut.start()], text[cut.end() :]
            if kind is Either and _CODE_END.search(before) and _CODE_START.match(after):
                continue  # inside a list of codes
            left = self.parse(before)
            right = self.parse(after) if left is not None else None
            if left is not None and right is not None:
                return kind((left, right))
        return None


_CODE_END, _CODE_START = re.compile(r"\d{3}$"), re.compile(r"-?\d{3,5}\b")
_CLAUSES: tuple[tuple[str, type[Every] | type[Either]], ...] = (
    (r",? or ", Either),
    (r", (?:and |then |but )?| and (?:then )?| then |: ", Every),
    (r" with (?:an? |the )?", Every),
)
_OPEN, _CLOSE = "([{", ")]}"


def _outside(text: str, separator: str) -> list[re.Match[str]]:
    """The places of `separator` outside quotes and brackets."""
    masked, depth, quoted = [], 0, False
    for at, character in enumerate(text):
        if character == '"':
            # A quote opens after a blank or a bracket; inches and such are not used.
            quoted = not quoted
        if not quoted:
            depth += (character in _OPEN) - (character in _CLOSE)
        hidden = quoted or depth > 0
        masked.append("\x00" if hidden and at > 0 else character)
    return list(re.finditer(separator, "".join(masked)))


def without_remarks(text: str) -> str:
    """`text` without what stands in parentheses."""
    plain, depth, quoted = [], 0, False
    for character in text:
        quoted ^= character == '"'
        if character == "(" and not quoted:
            depth += 1
        elif character == ")" and not quoted and depth:
            depth -= 1
        elif not depth:
            plain.append(character)
    return " ".join("".join(plain).split()).replace(" ,", ",").replace(" ;", ";").strip(" ,;:")


def each(check: Callable[[Exchange, re.Match[str], View], None]) -> Judge:
    """A rule that holds for every exchange of the view by itself."""

    def judge(view: View, match: re.Match[str]) -> None:
        if not view.exchanges:
            raise Mismatch("no exchange took place")
        many = len(view.seen.everything) > 1
        for exchange in view.exchanges:
            try:
                check(exchange, match, view)
            except Mismatch as fault:
                raise Mismatch(f"{exchange.name}: {fault}" if many else str(fault)) from None

    return judge


__all__ = ["Either", "Every", "Leaf", "Library", "Node", "Parser", "Rule", "Scope", "View", "each"]
