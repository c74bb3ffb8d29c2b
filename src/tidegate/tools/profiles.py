"""What is a client told when a call does not go well?

Two profiles say it with other means. `brief`: wrong arguments are error -32602 and an unknown tool
is -32601. `spec`, as MCP 2025-11-25 and later have it: wrong arguments are a result with `isError`,
which a model reads, and an unknown tool is -32602. A refusal by the world is a result with
`isError` in both, and a crash is -32603 with a constant text and the id under which it was logged.

Lives here: that table, pure. Does not live here: who finds a fault (strict), how an answer is
written (server, http).
"""

from dataclasses import asdict, dataclass
from typing import Final, Literal

Profile = Literal["brief", "spec"]
PROFILES: Final[tuple[Profile, ...]] = ("brief", "spec")

INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
FAULTS_KEY: Final = "tidegate/faults"
"""Where in the `_meta` of a result the faults stand that an error has in its `data`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one argument: a JSON pointer, the rule, and a sentence; never the value.

    The pointer is cut where names of the caller's make it long. The sentence of a rule that a
    tool's author wrote is the text of the author's ValueError.
    """

    pointer: str
    rule: str
    sentence: str


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """No tool of this name is served."""


@dataclass(frozen=True, slots=True)
class WrongArguments:
    """The call was not a valid thing to ask; at least one fault."""

    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The call was fine and the world said no; the text is for the model to read."""

    text: str


@dataclass(frozen=True, slots=True)
class Crashed:
    """Our own fault; `incident` is the id in the log."""

    incident: str


Trouble = UnknownTool | WrongArguments | Refused | Crashed


@dataclass(frozen=True, slots=True)
class RpcError:
    """An error of JSON-RPC; `data` is left out when it is None."""

    code: int
    message: str
    data: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class FailedResult:
    """A result with `isError: true`, and what stands in its `_meta`."""

    text: str
    meta: dict[str, object] | None = None


def tell(trouble: Trouble, profile: Profile) -> RpcError | FailedResult:
    """What the client gets. Nothing in it was sent by the client but names in pointers."""
    match trouble:
        case UnknownTool():
            code = METHOD_NOT_FOUND if profile == "brief" else INVALID_PARAMS
            return RpcError(code, "Unknown tool")
        case WrongArguments(faults):
            return _wrong(faults, profile)
        case Refused(text):
            return FailedResult(text)
        case Crashed(incident):
            return RpcError(
                INTERNAL_ERROR,
                "The tool failed. The incident is logged.",
                {"incident": incident},
            )


def wrong_params(faults: tuple[Fault, ...]) -> RpcError:
    """The answer to params that are none of MCP's, in both profiles."""
    return RpcError(INVALID_PARAMS, f"Invalid params: {_line(faults[0])}", _told(faults))


def _wrong(faults: tuple[Fault, ...], profile: Profile) -> RpcError | FailedResult:
    if profile == "brief":
        first = f"Invalid arguments: {_line(faults[0])}"
        return RpcError(INVALID_PARAMS, first, _told(faults))
    text = "\n".join(["Invalid arguments:", *map(_line, faults)])
    return FailedResult(text, {FAULTS_KEY: _told(faults)["faults"]})


def _line(fault: Fault) -> str:
    return f"{fault.pointer}: {fault.sentence}" if fault.pointer else fault.sentence


def _told(faults: tuple[Fault, ...]) -> dict[str, object]:
    return {"faults": [asdict(fault) for fault in faults]}


__all__ = [
    "FAULTS_KEY",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PROFILES",
    "Crashed",
    "FailedResult",
    "Fault",
    "Profile",
    "Refused",
    "RpcError",
    "Trouble",
    "UnknownTool",
    "WrongArguments",
    "tell",
    "wrong_params",
]
