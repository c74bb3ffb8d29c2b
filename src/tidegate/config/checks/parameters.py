"""Would a provider take the parameters that a candidate sets?

Lives here: the fields that mean the same everywhere, with what any provider refuses for them. Does
not live here: which names may be set at all (shapes). A field not listed here is the provider's
own, and its value is the operator's business.
"""

from collections.abc import Mapping

from tidegate.config.findings import Findings
from tidegate.config.models import Config
from tidegate.config.places import Path

_Bounds = tuple[float | None, float | None]
_ANY: _Bounds = (None, None)
_WHOLE: Mapping[str, _Bounds] = {
    # The same bound as `default_output_tokens`: what is reserved must fit some limit.
    "max_completion_tokens": (1, 10_000_000),
    "max_tokens": (1, 10_000_000),
    "seed": _ANY,
}
_NUMBERS: Mapping[str, _Bounds] = {
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "temperature": (0, 2),
    "top_p": (0, 1),
}


def check_parameters(config: Config, findings: Findings) -> None:
    """Every value that would have each request to its target refused."""
    for number, route in enumerate(config.routes):
        for index, candidate in enumerate(route.candidates):
            path: Path = ("routes", number, "candidates", index, "parameters")
            for name, value in candidate.parameters.items():
                if value is not None and not findings.touched((*path, name)):
                    _value(name, value, (*path, name), findings)


def _value(name: str, value: object, path: Path, findings: Findings) -> None:
    whole = name in _WHOLE
    if not whole and name not in _NUMBERS:
        return
    bounds = _WHOLE[name] if whole else _NUMBERS[name]
    kinds = int if whole else (int, float)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not (is_number and isinstance(value, int | float) and _is_within(value, bounds)):
        findings.error(
            path,
            f"providers refuse this as `{name}`",
            f"write {'a whole number' if whole else 'a number'}{_said(bounds)}, or null",
        )


def _is_within(value: float, bounds: _Bounds) -> bool:
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)


def _said(bounds: _Bounds) -> str:
    low, high = bounds
    return "" if low is None or high is None else f" from {low:.10g} to {high:.10g}"
