"""How is a value that breaks the model described to somebody who never saw the model?

Lives here: the words for every kind of validation error, and the words for what a key takes,
both derived from the model itself. Does not live here: rules between keys (checks).
"""

import difflib
import math
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from tidegate.config.kinds import Kind, bare, keys_of, kind_at
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted, spell
from tidegate.config.scalars import Ambiguity, resolve

Words = tuple[str, str]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be."""
    pool = list(known)
    folded = {candidate.lower().replace("-", "_"): candidate for candidate in pool}
    close = difflib.get_close_matches(word.lower().replace("-", "_"), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def words_for(
    error: ErrorDetails, ambiguity: Ambiguity | None, *, by_reference: bool = False
) -> Words:
    """Wrong and right for one validation error. Never shows the value of a secret.

    `by_reference`: the value came from the environment or a file, which can only give text.
    """
    path, value, type_ = error["loc"], error["input"], error["type"]
    kind = kind_at(path)
    if type_ == "extra_forbidden":
        return unknown_key(path)
    if type_ == "missing":
        return f"`{path[-1]}` is missing", f"add `{sample(path)}`"
    if type_ == "refused":
        context: Mapping[str, str] = error.get("ctx", {})
        return subject(value, kind, context["wrong"]), context["right"]
    if ambiguity is not None:
        return subject(value, kind, f"is unclear: {ambiguity.reading}"), wanted(kind, ambiguity)
    if (size := _SIZES.get(type_)) is not None:
        right = _number(kind, None, telling=math.inf) if kind and "less" in type_ else wanted(kind)
        return subject(value, kind, size), right
    if by_reference and kind is not None and not kind.text and not kind.words:
        return "a reference can only give text", wanted(kind)
    if isinstance(value, bool | int | float) and kind is not None and kind.text:
        return found(value, kind), f"put it in quotes{_as_text(value, kind)}"
    amount = _in_millionths(value) if kind is not None and kind.millionths else ""
    return found(value, kind), amount or wanted(kind, _unquoted(value), value)


def _in_millionths(value: object) -> str:
    """What to write for an amount of money that is given in whole units; "" if it is none."""
    plain = resolve(value)[0] if isinstance(value, str) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not math.isfinite(plain):
        return ""
    micros = round(plain * 1_000_000)
    if micros < 1 or not math.isclose(micros, plain * 1_000_000, rel_tol=1e-9):
        return "write whole millionths of the currency"
    return f"write whole millionths of the currency; {_plain(plain)} is {micros}"


def _as_text(value: object, kind: Kind) -> str:
    text = str(value).lower()
    return "" if kind.secret or len(text) > _LONGEST_NUMBER else f': "{text}"'


_LONGEST_NUMBER = 24
_SIZES: Mapping[str, str] = {
    "greater_than": "is too small",
    "greater_than_equal": "is too small",
    "less_than": "is too large",
    "less_than_equal": "is too large",
    "string_too_short": "is too short",
    "string_too_long": "is too long",
    "string_pattern_mismatch": "does not fit",
    "too_short": "is empty",
}


def _unquoted(value: object) -> Ambiguity | None:
    """What a text in quotes would have been without them."""
    if not isinstance(value, str):
        return None
    plain, _ = resolve(value)
    known = isinstance(plain, bool | int | float)
    return Ambiguity(value, "", str(plain).lower()) if known else None


def unknown_key(path: Path) -> Words:
    """Words for a key that the section around it does not have."""
    word = str(path[-1])
    parent = kind_at(path[:-1])
    keys = keys_of(parent.model) if parent is not None and parent.model is not None else []
    if (hint := _FOREIGN.get((_section(path), word.lower()))) is not None:
        return "unknown key", hint
    if word.partition(":")[0] in keys:
        return "the colon has no space after it", f"write `{word.partition(':')[0]}: ...`"
    close = nearest(word, keys)
    homes = [home for home in _homes().get(word, ()) if home != path[:-1]]
    if len(homes) == 1 and not _alike(word, close):
        home = f"`{spell(homes[0])}`" if homes[0] else "the top level of the file"
        return "unknown key here", f"{word} belongs under {home}"
    if close is not None:
        return "unknown key", f"did you mean `{close}`?"
    return "unknown key", f"known here: {', '.join(keys)}"


def _alike(word: str, close: str | None) -> bool:
    """Whether two words differ by a slip of the finger at most."""
    return close is not None and difflib.SequenceMatcher(None, word, close).ratio() > 0.8


def _section(path: Path) -> str:
    return str(path[0]) if len(path) > 1 else ""


# What people who come from other gateways write, by section.
_FOREIGN: Mapping[tuple[str, str], str] = {
    ("providers", "api_key"): 'write `credentials: ["${env:NAME}"]`',
    ("providers", "key"): 'write `credentials: ["${env:NAME}"]`',
    ("providers", "credential"): 'write `credentials: ["${env:NAME}"]`, a list',
    ("providers", "url"): "write `base_url`",
    ("providers", "type"): "write `dialect`",
    ("providers", "timeout"): "deadlines belong to a route: `routes[].deadlines`",
    ("providers", "timeout_s"): "deadlines belong to a route: `routes[].deadlines`",
    ("routes", "providers"): "write `candidates: [{ provider: NAME }]`",
    ("routes", "targets"): "write `candidates: [{ provider: NAME }]`",
    ("routes", "provider"): "write `candidates: [{ provider: NAME }]`",
    ("routes", "timeout"): "write `deadlines: { total_s: 60.0 }`",
    ("routes", "timeout_s"): "write `deadlines: { total_s: 60.0 }`",
    ("routes", "fallbacks"): "list every target under `candidates`, in order",
    ("routes", "retries"): "write `attempts`",
    ("routes", "temperature"): "write `parameters: { temperature: 0.2 }`",
    ("routes", "max_tokens"): "write `parameters: { max_tokens: 512 }`",
    ("routes", "priority"): "the order of `candidates` is their priority",
    ("routes", "models"): "write `model`, one pattern for each route",
    ("limits", "window"): "write `window_s`, in seconds",
    ("limits", "rpm"): "write `requests: N` with `window_s: 60`",
    ("limits", "tpm"): "write `tokens: N` with `window_s: 60`",
    ("identity", "token"): "write `key`",
    ("identity", "user"): "write `principal`",
    ("identity", "name"): "write `principal`",
    ("identity", "role"): "write `roles`, a list",
    ("mcp", "token"): "write `credential`",
    ("mcp", "args"): "write program and arguments as one list under `command`",
    ("", "models"): "models are named under `providers` and `routes`",
    ("", "model_list"): "write `providers` and `routes`",
    ("", "keys"): "write them under `identity`",
    ("", "rules"): "write them under `mcp`",
    ("", "servers"): "write them under `mcp`",
    ("", "host"): "write it under `server`",
    ("", "port"): "write it under `server`",
    ("", "log"): "write it under `telemetry`",
    ("", "logging"): "write `telemetry`",
    ("", "log_level"): "write `telemetry: { level: info }`",
}


def _homes() -> dict[str, tuple[Path, ...]]:
    """Every key of the file that lies at a fixed path -> the sections that have it."""
    homes: dict[str, tuple[Path, ...]] = {}
    for section, model in _fixed_sections((), Config):
        for key in keys_of(model):
            homes[key] = (*homes.get(key, ()), section)
    return homes


def _fixed_sections(path: Path, model: type[BaseModel]) -> Iterator[tuple[Path, type[BaseModel]]]:
    yield path, model
    for key in keys_of(model):
        inner = Kind(model).at(key)
        if inner is not None and inner.model is not None:
            yield from _fixed_sections((*path, key), inner.model)


def sample(path: Path) -> str:
    """A line that would fill the key at `path`."""
    kind = kind_at(path)
    example = kind.example if kind is not None else None
    return f"{path[-1]}: {example or '...'}"


# A long run of letters and digits may be a key that stands in the wrong place.
_LIKE_A_KEY = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+/=.-]{16,}\Z")
# So may what follows a name in the query of an address.
_LIKE_A_QUERY = re.compile(r"\?.*=")


def subject(value: object, kind: Kind | None, says: str) -> str:
    """A sentence about the value that `says` ends; shows it where that is safe and helps."""
    if isinstance(value, int | float) and not (kind is not None and kind.secret):
        number = str(value).lower()
        return f"{number if len(number) <= _LONGEST_NUMBER else 'this number'} {says}"
    if isinstance(value, tuple):
        return f"this list {says}"
    if isinstance(value, str) and value and _may_be_shown(value, kind):
        return f"{quoted(value)} {says}"
    return f"this value {says}"


def _may_be_shown(value: str, kind: Kind | None) -> bool:
    if (kind is not None and kind.secret) or len(value) > 40 or "@" in value:
        return False
    return not _LIKE_A_KEY.match(value) and not _LIKE_A_QUERY.search(value)


def found(value: object, kind: Kind | None) -> str:
    """What stands there instead, as a sentence; never the value of a secret."""
    if value is None:
        return "nothing stands here"
    if isinstance(value, dict | tuple):
        return f"this is a {'mapping' if isinstance(value, dict) else 'list'}"
    sentence = subject(value, kind, f"is {_noun(value, kind)}")
    return sentence.replace("this value is a single value", "this is a single value")


def _noun(value: object, kind: Kind | None) -> str:
    """What a single value is, said so that it differs from what is wanted."""
    plain = bare(kind.annotation) if kind is not None else None
    if isinstance(value, str):
        if plain in (bool, int, float):
            return "text"
        return "not known here" if typing.get_origin(plain) is Literal else "a single value"
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, float) and plain is int:
        return "not a whole number"
    return "a number" if plain is not float else "not a usable number"


def wanted(kind: Kind | None, ambiguity: Ambiguity | None = None, value: object = None) -> str:
    """What would be right at a place of this kind, where `value` stands now."""
    if kind is None:
        return "see `tidegate schema`"
    plain = bare(kind.annotation)
    if kind.model is not None:
        return _section_wanted(kind, kind.model)
    if typing.get_origin(plain) is not None:
        return _several_wanted(plain, value)
    if plain is bool:
        return f"write {ambiguity.plain}" if _is_truth(ambiguity) else "write true or false"
    if plain in (int, float):
        return _number(kind, ambiguity)
    if kind.secret:
        return "write ${env:NAME} or ${file:PATH}"
    if not kind.example:
        return "write text, in quotes"
    return f"write text, such as {kind.example if kind.example[0].isalnum() else _in_quotes(kind)}"


def _in_quotes(kind: Kind) -> str:
    """The example, where YAML would take its first character for a sign of its own."""
    return f'"{kind.example}"'


def _several_wanted(plain: Any, value: object) -> str:
    """What would be right where a mapping, a list or one of a few words is wanted."""
    arguments = typing.get_args(plain)
    if typing.get_origin(plain) is dict:
        return f"write {_sample_entry(Kind(arguments[1]))}"
    if typing.get_origin(plain) is tuple:
        return f"write a list, such as {_sample_list(arguments[0], value)}"
    return f"write one of {', '.join(map(str, arguments))}"


def _section_wanted(kind: Kind, model: type[BaseModel]) -> str:
    keys = ", ".join(keys_of(model))
    if kind.key:
        return f"write keys under it: {keys}"
    return f"write `{_sample_section(model)}` (known: {keys})"


def _sample_section(model: type[BaseModel]) -> str:
    """A mapping with one key, one that is needed if there is any."""
    fields = [(found.alias or name, found) for name, found in model.model_fields.items()]
    key, found_field = next((pair for pair in fields if pair[1].is_required()), fields[0])
    examples = found_field.examples
    return f"{{ {key}: {examples[0] if examples else '...'} }}"


def _sample_entry(value: Kind) -> str:
    """An entry of a mapping whose keys are free."""
    return f"`NAME: {_sample_section(value.model)}`" if value.model else "`NAME: VALUE`"


def _is_truth(ambiguity: Ambiguity | None) -> typing.TypeGuard[Ambiguity]:
    return ambiguity is not None and ambiguity.plain in ("true", "false")


def _sample_list(item: Any, value: object) -> str:
    inner = Kind(item)
    if inner.model is not None:
        return f"[{_sample_section(inner.model)}]"
    if inner.secret:
        return '["${env:NAME}"]'
    if isinstance(value, str) and value and _may_be_shown(value, inner):
        return "[" + quoted(value, mark='"') + "]"
    return '["..."]'


# Larger bounds only keep absurd numbers out; naming them helps only those who exceed them.
_TELLING = 10_000_000


def _number(kind: Kind, ambiguity: Ambiguity | None, *, telling: float = _TELLING) -> str:
    noun = "a whole number" if bare(kind.annotation) is int else "a number"
    if kind.seconds:
        noun += " of seconds"
    text = " ".join((f"write {noun}", *_bounds(kind, telling)))
    if ambiguity is not None and ambiguity.plain not in ("", "true", "false"):
        text += f", such as {ambiguity.plain}"
    return text


def _bounds(kind: Kind, telling: float) -> Iterator[str]:
    bounds = dict(kind.bounds())
    most = bounds.get("le", math.inf)
    end = _plain(most) if most <= telling and most < math.inf else ""
    if (least := bounds.get("ge")) is not None:
        yield f"from {_plain(least)} to {end}" if end else f"of at least {_plain(least)}"
    elif (above := bounds.get("gt")) is not None:
        yield f"above {_plain(above)}, at most {end}" if end else f"above {_plain(above)}"


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)
