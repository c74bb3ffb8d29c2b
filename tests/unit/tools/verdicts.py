"""What do the published schema and the model say of the same arguments?

Lives here: JSON as text with numbers in any spelling, both verdicts on it, and everything that
JSON Schema cannot say. Does not live here: which arguments and which models (the tests).
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tidegate import strictjson
from tidegate.tools import StrictInput, StrictTool
from tidegate.tools.strict import Fault, InvalidArguments
from tidegate.tools.written import Written

Excuse = Callable[[Fault, Any], bool]
"""Whether JSON Schema cannot know what is wrong with this value."""


class Number(str):
    """A number as it is spelled."""

    __slots__ = ()


NUMBERS = tuple(
    Number(text)
    for text in (
        *("0", "-0", "1", "-1", "2", "3", "5", "9999", "10000", "10001", "9007199254740993"),
        *("0.0", "-0.0", "1.0", "2.0", "1e0", "10e-1", "1E+2", "100e-2", "0.01", "0.010", "10.005"),
        *("0.1", "0.29", "4.35", "1.1", "0.5", "0.50", "2.5e-1", "0.30000000000000004", "1e-3"),
        *("0.009999", "10000.0", "10000.00", "1e4", "10000.01", "10000.0000000000001", "9999.99"),
        *("5e-324", "1e-400", "2e308", "1e400", "-1e400", "1.7976931348623157e308"),
        *("1" + "0" * 30, "-" + "9" * 40, "1" + "0" * 330, "0." + "0" * 40 + "1"),
        "10." + "0" * 60,
    )
)
TEXTS = (
    *(
        "",
        " ",
        "a",
        "red",
        "Red",
        "x",
        "1",
        "1.0",
        "50",
        "true",
        "null",
        "[]",
        "{}",
        "1e5",
        "\u00e9",
    ),
    *("CUST-10001", "cust-10001", "CUST-1000", "CUST-100010", "CUST-10001\n", " CUST-10001"),
    *(
        "CUST-1000\u0661",
        "CUST-\uff11\uff12\uff13\uff14\uff15",
        "CUST-10001\x00",
        "CUST\u201010001",
    ),
    *(
        "parcel never arrived",
        "ten chars!",
        "nine char",
        "a b c d e f g h i",
        "a b c d e f g h i j",
    ),
    *(" " * 12, "\u200b" * 12, "\u3164" * 12, "\u0301" * 12, "\U000e0041" * 12, "\u2800" * 12),
    *("abcdefghi\u200b", "abcdefghi\u00e9", "\U0001f600" * 10, "\U0001f600" * 9, "e\u0301" * 9),
    *("z" * 2000, "z" * 2001, "k-1", "_", "K" * 64, "K" * 65, "k 1", "k\n", "k/1"),
    *("2024-02-29", "2024-02-30", "20240229", "2024-02-29T00:00:00", "1700000000", "\u0661"),
    *("12345678-1234-5678-1234-567812345678", "12345678123456781234567812345678"),
    *("+1", "-.5", "5.", ".", "1_000", " 1", "NaN", "Infinity", "1e", "--1", "0x1", "1e-5"),
)

# Half a surrogate pair is no text that could arrive.
texts = st.sampled_from(TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=14)
spelled = (
    st.sampled_from(NUMBERS)
    | st.integers(-(10**6), 10**6).map(lambda whole: Number(str(whole)))
    | st.decimals(-20_000, 20_000, places=3).map(lambda exact: Number(f"{exact:f}"))
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda real: Number(repr(real)))
)
# A pointer is cut where names make it long: what it points to would not be found.
keys = st.sampled_from([text for text in TEXTS if len(text) < 20])
leaves = st.none() | st.booleans() | spelled | texts
junk = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


def spell(value: Any) -> str:
    """JSON text in which every Number stands as it is."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{spell(value[key])}" for key in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spell, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Verdicts:
    """Both, and the arguments as the schema's judge read them."""

    schema: bool
    faults: tuple[Fault, ...]
    read: Any

    @property
    def model(self) -> bool:
        return not self.faults

    def unexcused(self, excuses: tuple[Excuse, ...]) -> bool:
        """Whether they differ in what JSON Schema can say.

        What the schema refuses, the model may never take. What the model alone refuses needs an
        excuse for each argument.
        """
        if self.schema == self.model:
            return False
        if not self.schema:
            return True
        blamed: dict[str, bool] = {}
        for fault in self.faults:
            top = f"{fault.pointer}/".split("/")[1]
            value = _at(self.read, fault.pointer)
            known = any(excuse(fault, value) for excuse in (*ALWAYS, *excuses))
            blamed[top] = blamed.get(top, False) or known
        return not all(blamed.values())


class Judge:
    """A model and what it publishes. `exact`: the schema's judge rounds no number, either."""

    def __init__(self, model: type[StrictInput], *, exact: bool = True) -> None:
        self._tool: StrictTool[Any] = StrictTool("judged", "", model, _never)
        self.schema = self._tool.schema()
        Draft202012Validator.check_schema(self.schema)
        self._real = Decimal if exact else float
        # As it is published: 0.01 is a cent, not the float nearest to it.
        sent = json.loads(json.dumps(self.schema), parse_float=self._real)
        self._validator = Draft202012Validator(sent)

    def __call__(self, text: str) -> Verdicts:
        """Both verdicts on one document, each read from the text in its own way."""
        read = json.loads(text, parse_float=self._real)
        with localcontext(prec=500):  # a remainder has as many digits as the number
            return Verdicts(self._validator.is_valid(read), self.faults(text), read)

    def faults(self, text: str) -> tuple[Fault, ...]:
        """The verdict of the model alone."""
        arguments = strictjson.loads(text.encode(), real=Written)
        assert isinstance(arguments, dict)
        try:
            self._tool.check(arguments)
        except InvalidArguments as error:
            return error.faults
        return ()


async def _never(_call: StrictInput) -> None:
    raise AssertionError


def _at(document: Any, pointer: str) -> Any:
    """What a pointer names; steps that name a member of a union lead nowhere."""
    for raw in pointer.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list) and step.isdecimal() and int(step) < len(document):
            document = document[int(step)]
    return document


def _whole_with_a_point(fault: Fault, value: Any) -> bool:
    """1.0 is an integer for JSON Schema; here it is what a float was made into."""
    if fault.rule not in {"int_type", "literal_error", "enum"}:
        return False
    return isinstance(value, Decimal | float) and _numbers_in(value, lambda one: one % 1 == 0)


def _beyond_double(_: Fault, value: Any) -> bool:
    """JSON Schema knows no bound of numbers; a float has one."""
    return not _numbers_in(value, lambda one: abs(one) < Decimal(2) ** 1024)


def _last_newline(fault: Fault, value: Any) -> bool:
    """`$` is the end of the text in ECMA-262 and in the model; in Python also before a newline."""
    return fault.rule == "string_pattern_mismatch" and str(value).endswith("\n")


def _numbers_in(value: Any, holds: Callable[[Any], bool]) -> bool:
    return all(
        (isinstance(one, int) or math.isfinite(one)) and holds(one) for one in _numbers(value)
    )


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, int | float | Decimal):
        yield value
    for item in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _numbers(item)


ALWAYS: tuple[Excuse, ...] = (_whole_with_a_point, _beyond_double, _last_newline)
