"""Does this argument of a call satisfy this condition of a rule?

Lives here: the small language of `when` (comparison, `in`, `startswith`, `matches`), compiled
without eval, and its three-valued answers. Does not live here: which rule holds a condition and
what follows from the answer (rules, authorize).
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tidegate.mcp.folding import compatible, fold, fold_words, folded_names, is_short
from tidegate.mcp.patterns import (
    MAX_VALUE_CHARS,
    UnsafePattern,
    compile_pattern,
    without_parameters,
)
from tidegate.mcp.url_prefixes import UrlPrefix

_MAX_CHOICES: Final = 1000
_MAX_MEMBERS: Final = 1000
_MAX_MEMBER_CHARS: Final = 16_384
_CONDITION: Final = re.compile(
    r"\s*([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*)\s*"
    r"(<=|>=|==|!=|<|>|(?<=\s)(?:in|startswith|matches)\b)\s*(.*?)\s*",
    re.DOTALL,
)
_SCALAR: Final = re.compile(
    r"'[^']*'|\"[^\"]*\"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null"
)
_HIDDEN_STEP: Final = re.compile(r"\\|\0|%(?:2[5eEfF]|5[cC])|(?:^|/)\.\.?;")


class BrokenCondition(ValueError):
    """The condition cannot be compiled; `str()` says why, in our own words."""


class _Absent(Enum):
    ABSENT = "absent"


_Test = Callable[[object], bool | None]


@dataclass(frozen=True, slots=True)
class Condition:
    """One compiled condition. `text` is what the operator wrote; `operand` the path it reads."""

    text: str
    operand: str
    _test: _Test
    _careless: _Test

    def allows(self, arguments: "Given") -> bool:
        """Whether an allow rule may count it as met: only a certain yes."""
        return self._answer(self._test, arguments) is True

    def denies(self, arguments: "Given") -> bool:
        """Whether a deny rule must count it as met: everything but a certain no.

        Texts are compared exactly and as a careless reader would; one yes is enough.
        """
        exact = self._answer(self._test, arguments)
        return exact is not False or self._answer(self._careless, arguments) is not False

    def _answer(self, test: _Test, arguments: "Given") -> bool | None:
        value = Arguments.of(arguments).at(self.operand)
        if value is _Absent.ABSENT or (
            isinstance(value, str) and not is_short(value, MAX_VALUE_CHARS)
        ):
            return None
        return test(value)


class Arguments:
    """The arguments of one call, for as many conditions as there are: each place is found once.

    They must not change meanwhile.
    """

    __slots__ = ("_found", "_given", "_names")

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = given
        self._found: dict[str, object] = {}
        self._names: dict[int, Counter[str]] = {}

    @classmethod
    def of(cls, given: "Given") -> "Arguments":
        """These, if they are such already."""
        return given if isinstance(given, Arguments) else cls(given)

    def at(self, path: str) -> object:
        """The value at `path`; ABSENT also when a second member folds to the same name.

        So is it among more names than any tool has, or among longer ones, or beside more of them
        outside of ASCII than `folded_names` takes: nobody compares a whole body of them. Cost:
        the names on the way, once for all paths.
        """
        if path not in self._found:
            self._found[path] = self._look_up(path)
        return self._found[path]

    def _look_up(self, path: str) -> object:
        node: object = self._given
        for step in path.split("."):
            if not isinstance(node, Mapping) or step not in node:
                return _Absent.ABSENT
            if self._folded(node)[fold(step)] != 1:
                return _Absent.ABSENT
            node = node[step]
        return node

    def _folded(self, node: Mapping[str, object]) -> Counter[str]:
        """How often there is each name in an object; nothing if that is not worth the work."""
        # What was given outlives this, so that no other object has the same identity.
        counted = self._names.get(id(node))
        if counted is None:
            few = len(node) <= _MAX_MEMBERS and sum(map(len, node)) <= _MAX_MEMBER_CHARS
            counted = self._names[id(node)] = Counter(folded_names(node) if few else None)
        return counted


def compile_condition(text: str) -> Condition:
    """`text` such as "amount <= 500", "region in ['eu', 'us']", "path startswith '/data/'".

    The operand is a dotted path into the arguments. Texts stand in single or double quotes and
    know no escapes. Raises BrokenCondition.
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise BrokenCondition(
            "write: argument, one of < <= > >= == != in startswith matches, value"
        )
    operand, operator, literal = match.groups()
    value = _literal(literal)
    test, careless = _TESTS[operator](value)
    return Condition(text, operand, test, careless)


Given = Mapping[str, object] | Arguments


def value_at(arguments: Given, path: str) -> object:
    """The value a condition on `path` reads; None where it finds none."""
    value = Arguments.of(arguments).at(path)
    return None if value is _Absent.ABSENT else value


def _literal(text: str) -> object:
    if not text.startswith("["):
        return _scalar(text)
    if not text.endswith("]"):
        raise BrokenCondition("the list has no end")
    rest, values = text[1:-1].strip(), []
    while rest:
        match = _SCALAR.match(rest)
        if match is None:
            raise BrokenCondition("a list holds texts in quotes, numbers, true, false or null")
        values.append(_scalar(match.group()))
        rest = rest[match.end() :].lstrip()
        if rest and not rest.startswith(","):
            raise BrokenCondition("the values of a list are separated by commas")
        rest = rest[1:].lstrip()
    if not 0 < len(values) <= _MAX_CHOICES:
        raise BrokenCondition("a list holds between 1 and 1000 values")
    return values


def _scalar(text: str) -> object:
    if _SCALAR.fullmatch(text) is None:
        raise BrokenCondition("the value must be a text in quotes, a number, true, false or null")
    if text[0] in "'\"":
        return text[1:-1]
    value: object = json.loads(text)
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(value: object, wanted: object) -> bool | None:
    """Equality without coercion; None when the two are of different kinds."""
    if _is_number(value) and _is_number(wanted):
        return value == wanted
    if type(value) is not type(wanted):
        return None
    return value == wanted


def _folded(value: object) -> object:
    return fold(value) if isinstance(value, str) else value


def _in(wanted: object) -> tuple[_Test, _Test]:
    if not isinstance(wanted, list):
        raise BrokenCondition("`in` needs a list in square brackets")
    careless = [_folded(choice) for choice in wanted]
    return (
        lambda value: _any(value, wanted),
        lambda value: _any(_folded(value), careless),
    )


def _any(value: object, choices: list[object]) -> bool | None:
    answers = [_same(value, choice) for choice in choices]
    if True in answers:
        return True
    return False if False in answers else None


def _equal(wanted: object) -> tuple[_Test, _Test]:
    _no_list(wanted)
    careless = _folded(wanted)
    return lambda value: _same(value, wanted), lambda value: _same(_folded(value), careless)


def _unequal(wanted: object) -> tuple[_Test, _Test]:
    # The careless reader finds more texts equal, so here it is the one that is certain: an allow
    # for everything but 'prod' is no allow for 'PROD'.
    equal, careless = _equal(wanted)
    return lambda value: _inverted(careless(value)), lambda value: _inverted(equal(value))


def _inverted(answer: bool | None) -> bool | None:  # noqa: FBT001 - a value, not a switch
    return None if answer is None else not answer


def _no_list(wanted: object) -> None:
    if isinstance(wanted, list):
        raise BrokenCondition("a list goes with `in`")


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[object], tuple[_Test, _Test]]:
    def build(wanted: object) -> tuple[_Test, _Test]:
        if isinstance(wanted, bool) or not isinstance(wanted, int | float):
            raise BrokenCondition("this comparison needs a number")

        def test(value: object) -> bool | None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                return None
            return compare(value, wanted)

        return test, test

    return build


def _startswith(wanted: object) -> tuple[_Test, _Test]:
    if not isinstance(wanted, str) or not wanted:
        raise BrokenCondition("`startswith` needs a text in quotes")
    if UrlPrefix.is_one(wanted):
        return _url_startswith(wanted)
    return _text_startswith(wanted)


def _url_startswith(wanted: str) -> tuple[_Test, _Test]:
    prefix = UrlPrefix.of(wanted)
    if prefix is None:
        raise BrokenCondition(
            "the prefix is a URL with dot steps, broken escapes, blanks, or a host outside of ASCII"
        )
    as_path, careless_path = _text_startswith(wanted)

    def test(value: object) -> bool | None:
        found = as_path(value)
        return found and isinstance(value, str) and prefix.holds(value)

    def careless(value: object) -> bool | None:
        return (isinstance(value, str) and prefix.may_hold(value)) or careless_path(value)

    return test, careless


def _text_startswith(wanted: str) -> tuple[_Test, _Test]:
    is_path = "/" in wanted
    prefix = _plain_path(wanted) if is_path else wanted
    if prefix is None:
        raise BrokenCondition("the prefix has steps upwards, escapes or backslashes")
    folded_prefix = fold(prefix)

    def plain(value: object) -> str | None:
        if not isinstance(value, str):
            return None
        return _plain_path(value) if is_path else value

    def test(value: object) -> bool | None:
        text = plain(value)
        return None if text is None else text.startswith(prefix)

    def careless(value: object) -> bool | None:
        ways = [plain(value)]
        if is_path and isinstance(value, str) and ";" in (spelled := compatible(value)):
            # To some servers a semicolon begins parameters, which do not count for the path.
            ways.append(plain(without_parameters(spelled)))
        if any(way is not None and fold(way).startswith(folded_prefix) for way in ways):
            return True
        return None if None in ways else False

    return test, careless


def _plain_path(path: str) -> str | None:
    """`path` without empty and dot steps; None if it climbs above its start or hides a step.

    Hidden is what another reader may take for a step: escapes, backslashes, parameters of a dot
    step, and signs that become dots or slashes in NFKC.
    """
    plain = compatible(path)
    if _HIDDEN_STEP.search(plain) or _steps(plain) != _steps(path):
        return None
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            if not steps:
                return None
            steps.pop()
        elif step not in {"", "."}:
            steps.append(step)
    root = "/" if path.startswith("/") else ""
    end = "/" if steps and path.endswith("/") else ""
    return f"{root}{'/'.join(steps)}{end}"


def _steps(path: str) -> list[str]:
    return [step if step in (".", "..") else "" for step in path.split("/")]


def _matches(wanted: object) -> tuple[_Test, _Test]:
    if not isinstance(wanted, str):
        raise BrokenCondition("`matches` needs a pattern in quotes")
    try:
        pattern = compile_pattern(wanted)
    except UnsafePattern as error:
        raise BrokenCondition(f"the pattern is not safe: {error}") from error
    in_any_case = re.compile(wanted, re.ASCII | re.IGNORECASE)

    def test(value: object) -> bool | None:
        return pattern.fullmatch(value) is not None if isinstance(value, str) else None

    def careless(value: object) -> bool | None:
        # With blanks between the words it is longer: the pattern may have some of its own.
        longer = fold_words(value) if isinstance(value, str) else None
        if longer is None or len(longer) > MAX_VALUE_CHARS:
            return None  # one character may fold to eighteen, and the pattern was measured for less
        return any(map(in_any_case.fullmatch, (longer, fold(longer))))

    return test, careless


_TESTS: Final[Mapping[str, Callable[[object], tuple[_Test, _Test]]]] = {
    "<": _ordered(lambda value, bound: value < bound),
    "<=": _ordered(lambda value, bound: value <= bound),
    ">": _ordered(lambda value, bound: value > bound),
    ">=": _ordered(lambda value, bound: value >= bound),
    "==": _equal,
    "!=": _unequal,
    "in": _in,
    "startswith": _startswith,
    "matches": _matches,
}

__all__ = ["Arguments", "BrokenCondition", "Condition", "Given", "compile_condition", "value_at"]
