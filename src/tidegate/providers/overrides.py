"""What does a target set in every request that it gets, whatever the client wrote?

Lives here: the parameters of a target laid over a request, as bytes for the provider and as a
document for the estimate, so that what is reserved is what is sent. Does not live here: which
names an operator may set (config), how one member changes in place (splice).
"""

from collections.abc import Mapping

import msgspec

from tidegate.providers.splice import with_members, without_member

# Two names of one setting. Providers refuse both at once, and most know one of them: the name in
# the file says which, and the client's figure must not survive under the other one.
_TWINS: Mapping[str, str] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}


def overridden(body: bytes, parameters: Mapping[str, object]) -> bytes:
    """`body` with the members of `parameters`; None takes a member out.

    `body` is a JSON object that strictjson has accepted; whatever is not named keeps its bytes
    and its place. One limit of the answer that is set takes out the client's under its other
    name. Cost: nothing without parameters, else a scan or two and as many copies.
    """
    if not parameters:
        return body
    for name in _taken_out(parameters):
        body = without_member(body, name)
    given = {name: value for name, value in parameters.items() if value is not None}
    encoded = {name: msgspec.json.encode(value) for name, value in given.items()}
    return with_members(body, encoded)


def as_sent(
    document: Mapping[str, object], parameters: Mapping[str, object]
) -> Mapping[str, object]:
    """The request `document` as the target gets it: what `overridden` makes of its bytes."""
    if not parameters:
        return document
    gone = _taken_out(parameters)
    kept = {name: value for name, value in document.items() if name not in gone}
    return kept | {name: value for name, value in parameters.items() if value is not None}


def _taken_out(parameters: Mapping[str, object]) -> frozenset[str]:
    empty = {name for name, value in parameters.items() if value is None}
    twins = {twin for name, twin in _TWINS.items() if name in parameters}
    return frozenset(empty | (twins - parameters.keys()))


__all__ = ["as_sent", "overridden"]
