"""What do the reference pages say?

Writes docs/reference/*.md from the code, so that they cannot differ from it; with --check it only
tells which are stale. `make docs` and `make docs-check` run it.
"""

import json
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from tidegate import errors
from tidegate.cli import COMMANDS
from tidegate.config import Config
from tidegate.demo.faults import GROUPS, OPTIONS
from tidegate.gateway.relay import OUTCOME_OF, PASSING
from tidegate.jsonrpc import _BY_STATUS, Code
from tidegate.routing import (
    TAXONOMY,
    Failover,
    GiveUp,
    Handling,
    Outcome,
    Route,
    Target,
    Targets,
    Try,
    classify,
)
from tidegate.routing.outcome import Trips

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py from the code; change it there and run `make docs`. -->\n"


def error_page() -> str:
    """Every error a client of the model API can see."""
    rows = ["| status | type | code | message |", "|---|---|---|---|"]
    # Kinds without a code of their own only group others; a bug has the code of the root.
    found = [kind for kind in _subclasses(errors.TidegateError) if "code" in vars(kind)]
    found.append(errors.InternalError)
    for kind in sorted(found, key=lambda kind: (_status(kind), kind.code)):
        shown = kind.public_message
        if "message" in vars(kind) and "public_message" not in vars(kind):
            shown = "*built from our own names and numbers*"
        rows.append(f"| {_status(kind)} | `{kind.type}` | `{kind.code}` | {shown} |")
    return (
        f"{NOTE}\n# Errors\n\n"
        'Every refusal and failure of `/v1/...` has the body `{"error": {"type", "code", "message",'
        ' "request_id"}}`, and `param` when one\nfield of the request is at fault. The request id is'
        " also the header `x-request-id`; `tidegate explain` takes it.\n"
        "`gateway.all_providers_failed` is 503 with Retry-After when every target was open or"
        " cooling, 504 when the time was over.\n\n" + "\n".join(rows) + "\n\n" + _mcp_codes()
    )


# When each JSON-RPC code is sent. A code of the enumeration without a line here fails the build.
MCP_CODES = {
    Code.PARSE_ERROR: ("400", "The body is not JSON."),
    Code.INVALID_REQUEST: (
        "400, 404, 405, 413, 415, 431",
        "Not JSON-RPC, ambiguous, a batch where the revision has none, an unknown session,"
        " or none where the server wants one.",
    ),
    Code.METHOD_NOT_FOUND: (
        "200; 404 for a method in 2026-07-28",
        "A method the gateway does not know; a tool that does not exist or, by default"
        " (`mcp.hide_denied: full`), is denied.",
    ),
    Code.INVALID_PARAMS: (
        "200; 400 in 2026-07-28",
        "A call that names nothing readable; a cursor that the caller was not given for that list;"
        " an unknown prompt, resource or task, or, with `hide_denied: full`, a denied one. With"
        " `mcp.errors: spec` tools as well.",
    ),
    Code.INTERNAL_ERROR: (
        "200; 500 for our own",
        "The tool server failed, whatever it said, or the gateway did.",
    ),
    Code.UNAUTHENTICATED: ("401", "No key, or a wrong one."),
    Code.UNAUTHORIZED: (
        "200",
        "A denied call, with `mcp.errors: brief` and without `hide_denied: full`; or one of which"
        " only these arguments are denied.",
    ),
    Code.HEADER_MISMATCH: ("400", "The MCP headers do not say what the body says."),
    Code.MISSING_CAPABILITY: ("", "Never of our own; passed on from a tool server."),
    Code.UNSUPPORTED_VERSION: ("400", "A protocol version the gateway does not speak."),
    Code.RATE_LIMITED: ("200; 429 with `spec`", "A limit is used up; `data.retryAfterMs`."),
    Code.EXCEEDS_LIMIT: ("200; 413 with `spec`", "More than a limit ever allows."),
    Code.UNAVAILABLE: ("503", "No capacity, or the call cannot be accounted for or recorded."),
    Code.FORBIDDEN: (
        "403",
        "A denied call with `mcp.errors: spec`, without `hide_denied: full`; a foreign Origin.",
    ),
    Code.BLOCKED: ("200", "A detector with the action `block` found something."),
}


def _gateway_errors(code: Code) -> list[str]:
    """Our own errors that are sent as `code` on the way of a tool call."""
    others = {
        errors.Unauthenticated.code: Code.UNAUTHENTICATED,
        errors.InternalError.code: Code.INTERNAL_ERROR,
        errors.RedactionFailed.code: Code.INTERNAL_ERROR,
    }
    return [name for name, number in {**_BY_STATUS, **others}.items() if number == code]


def _mcp_codes() -> str:
    rows = ["| code | HTTP status | sent for | gateway errors |", "|---|---|---|---|"]
    for code in Code:
        status, meaning = MCP_CODES[code]
        names = ", ".join(f"`{name}`" for name in _gateway_errors(code))
        rows.append(f"| {code.value} | {status} | {meaning} | {names} |")
    return (
        "## MCP\n\nOn `/mcp` errors are JSON-RPC errors. `data.request_id` and `data.reason` (a code"
        " of the table above) are there when a\ngateway error is behind it. A tool server's own"
        " errors are passed on, masked, if their code is one of those that MCP\ndefines for what a"
        " client did (-32600 to -32602, -32020 to -32022, -32002, -32042); all others become"
        " -32603.\n\n" + "\n".join(rows) + "\n"
    )


def configuration_page() -> str:
    """Every key of the file, with its type, default and meaning."""
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    rows += [f"| {' | '.join(row)} |" for row in _keys(Config, "")]
    return (
        f"{NOTE}\n# Configuration\n\nEvery key is optional. `[]` marks the items of a list, `NAME` a"
        " name of yours. [examples/full.yaml](../../examples/full.yaml) shows them in\nplace;"
        " `tidegate check` says which of them this release does not obey yet.\n\n"
        + "\n".join(rows)
        + "\n"
    )


def command_page() -> str:
    """Every command of this release."""
    rows = ["| command | does |", "|---|---|"]
    for name, (home, line) in COMMANDS.items():
        rows.append(f"| `tidegate {name}` | {line} |")
        module, _, member = home.partition(":")
        group = getattr(import_module(module), member)
        parts = group.commands.items() if isinstance(group, click.Group) else ()
        rows += [f"| `tidegate {name} {part}` | {first_line(each)} |" for part, each in parts]
    return (
        f"{NOTE}\n# Commands\n\n`tidegate COMMAND --help` has the options and an example. Exit codes:"
        " 0 done, 1 failed at run time, 2 usage,\n3 configuration invalid, 4 a check found a"
        " difference, 130 interrupted.\n\n" + "\n".join(rows) + "\n"
    )


def first_line(command: click.Command) -> str:
    """The summary in the help of a command."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def fault_page() -> str:
    """Everything that the providers of the demo can do wrong."""
    parts = [
        f"{NOTE}\n# Failing providers on command\n\n"
        "`tidegate demo providers` is two OpenAI style providers, without an account and without a"
        " network, that fail in nearly\neighty ways. It tells you what your gateway (this one or"
        " another) does when a provider fails. Every answer, good or bad, names\nmade-up hosts, an"
        " account and a key in its head, and every error in its body: none of them may reach a"
        " client.\n\n"
        "```bash\ntidegate demo providers --port 9201\n```\n\n"
        "Point your gateway at `http://127.0.0.1:9201/primary/v1` and"
        " `http://127.0.0.1:9201/backup/v1`, or at the port that each\nof them has of its own (9202"
        " and 9203, or free ones; the output says which), `http://127.0.0.1:9202/v1`. Any key and\nany"
        " model will do. Then switch them while they run:\n\n"
        "```bash\n"
        "curl -X POST 'localhost:9201/_set?provider=primary&behaviour=503&times=2'\n"
        "curl -X POST 'localhost:9201/_set?provider=primary&behaviour=500,reset,ok,429'\n"
        "curl localhost:9201/_state     # behaviour, calls, clients that left before the end\n"
        "```\n\n| beside `provider` and `behaviour` | means |\n|---|---|\n"
    ]
    parts += [f"| `{name}` | {about} |\n" for name, about in OPTIONS.items()]
    for group, behaviors in GROUPS.items():
        parts.append(f"\n## {group}\n\n| behaviour | does |\n|---|---|\n")
        parts += [f"| `{one.name}` | {one.about} |\n" for one in behaviors]
    return "".join(parts)


# What makes each outcome. An outcome without a line here fails the build.
OUTCOMES = {
    Outcome.OK: "A whole answer.",
    Outcome.RATE_LIMITED: "429, or an error that says so.",
    Outcome.QUOTA: "402, or an error that says that our account has no credit, whatever its status.",
    Outcome.TIMEOUT: "No first content, or no whole answer, by the deadline of the attempt.",
    Outcome.UNREACHABLE: "Name, connection or TLS failed, or it was reset before any content.",
    Outcome.SERVER_ERROR: "500 and above, or an error without a cause before any content.",
    Outcome.MALFORMED: "A 200 that is no answer: no JSON, no content, another protocol, too large.",
    Outcome.REJECTED: "400, 422 and all other statuses that blame the request.",
    Outcome.CONTEXT: "The prompt is longer than the model's window, or 413.",
    Outcome.FILTERED: "The provider's content policy refused.",
    Outcome.CREDENTIAL: "401: our key is refused.",
    Outcome.FORBIDDEN: "403: our key may not do this.",
    Outcome.NOT_FOUND: "404 or 410: no such model or address.",
    Outcome.TRANSIENT: "408, 409, 425: not now; or larger than a minute of our quota there.",
    Outcome.INTERRUPTED: "The answer broke off.",
    Outcome.CANCELLED: "The client left, or the gateway is stopping.",
    Outcome.OPEN: "Not asked: its breaker is open.",
    Outcome.COOLING: "Not asked: it rests.",
}
_NOT_ENDS = frozenset({Outcome.OK, Outcome.CANCELLED, Outcome.OPEN, Outcome.COOLING})

# What providers say, and the status they say it with: shown with what `classify` makes of it.
SAYINGS = (
    (429, "code", "insufficient_quota"),
    (429, "message", "Request too large for gpt-4o"),
    (400, "message", "Your credit balance is too low"),
    (400, "code", "context_length_exceeded"),
    (400, "message", "prompt is too long: 210000 tokens > 200000 maximum"),
    (400, "code", "content_filter"),
    (400, "message", "Incorrect API key provided"),
    (400, "type", "permission_error"),
    (400, "code", "model_not_found"),
    (400, "code", "rate_limit_exceeded"),
    (500, "code", "context_length_exceeded"),
    (200, "code", "rate_limit_exceeded"),
    (200, "type", "invalid_request_error"),
    (200, "message", "something went wrong"),
)


def failover_page() -> str:
    """What follows from each outcome of an attempt, and what makes it one."""
    rows = [
        "| outcome | what happened | goes on to | breaker | rests | client gets if it was the last |"
        " alert |",
        "|---|---|---|---|---|---|---|",
    ]
    for outcome, handling in TAXONOMY.items():
        alert = f"`{handling.alert}`" if handling.alert else ""
        if handling.trips is Trips.NAMED:
            alert += ", if the candidate names its model or none of the last ten was good"
        onward = "" if outcome in (Outcome.OK, Outcome.CANCELLED) else handling.onward.value
        cells = (
            OUTCOMES[outcome],
            onward,
            _breaker(handling),
            _rest(outcome),
            _last(outcome),
            alert,
        )
        rows.append(f"| `{outcome}` | {' | '.join(cells)} |")
    statuses = ["| status | outcome |", "|---|---|", *_statuses()]
    sayings = ["| status | error says | outcome |", "|---|---|---|"]
    for status, name, text in SAYINGS:
        body = json.dumps({"error": {name: text}}).encode()
        sayings.append(f"| {status} | {name} `{text}` | `{classify(status, {}, body)}` |")
    failures = ["| connection | outcome | the same target again |", "|---|---|---|"]
    for failure, outcome in OUTCOME_OF.items():
        again = "may be" if failure in PASSING else "no"
        failures.append(f"| {failure.value} | `{outcome}` | {again} |")
    tables = (rows, statuses, sayings, failures)
    return (
        f"{NOTE}\n# Failover: what follows from what\n\n"
        "The outcomes are the words of the header `x-tidegate-attempts`, of the metric"
        " `tidegate_attempts_total`, of the log and of\n`tidegate explain`. The last column but one"
        " is what a route with this one target answers; [failover](../failover.md) explains\n"
        "the rest. A client that has had content is never asked to start again: it gets the event"
        " `gateway.upstream_interrupted`.\n\n"
        "{}\n\n## By status\n\nOnly a 200 can be an answer: any other status below 400 is `malformed`, also with a good document,\nunless an error object in it says more. Statuses from 600 on are `server_error`.\n\n{}\n\n## By what an error says\n\nSome examples. A 200 is judged by"
        " the error object in it, in a document as in an event before the first content.\n\n{}\n\n"
        "## By what became of the connection\n\nA status of exactly 500 may be asked again, too.\n\n"
        "{}\n"
    ).format(*("\n".join(table) for table in tables))


def _breaker(handling: Handling) -> str:
    if handling.trips is Trips.ALWAYS:
        return "opens at once"
    if handling.trips is Trips.NAMED:
        return f"opens at once if the candidate names its model, else {handling.verdict}"
    return handling.verdict.value


def _ended(outcome: Outcome, at_s: float) -> tuple[Targets, errors.TidegateError]:
    """A walk over a single target that ends so, `at_s` into a request of a minute."""
    targets, target = Targets(), Target("only")
    route = Route("only", (target,), attempts=1)
    walk = Failover(route, targets, started_s=0.0, total_s=60.0)
    step = walk.start(0.0)
    assert isinstance(step, Try)
    last = walk.on(outcome, at_s)
    assert isinstance(last, GiveUp)
    return targets, last.error


def _rest(outcome: Outcome) -> str:
    if outcome in _NOT_ENDS or not TAXONOMY[outcome].cools:
        return ""
    rest_s = _ended(outcome, 1.0)[0].look(Target("only"), 1.0).cooling_s
    return (
        f"{rest_s:.0f} s, or longer if it says so; at most `cooling.max_s`"
        if rest_s > 60
        else f"as it says, else {rest_s:.0f} s"
    )


def _last(outcome: Outcome) -> str:
    if outcome is Outcome.OK:
        return "the answer"
    if outcome is Outcome.CANCELLED:
        return ""
    shown = [_error(_ended(Outcome.RATE_LIMITED if outcome in _NOT_ENDS else outcome, 1.0)[1])]
    late = _error(_ended(outcome, 60.0)[1]) if outcome is Outcome.TIMEOUT else shown[0]
    if late != shown[0]:
        shown.append(f"{late} when the time of the request is over")
    return "; ".join(shown)


def _error(error: errors.TidegateError) -> str:
    wait = " with Retry-After" if error.retry_after_s is not None else ""
    return f"{error.status} `{error.code}`{wait}"


def _statuses() -> Iterator[str]:
    """Each run of statuses that mean the same."""
    for outcome, run in groupby(range(400, 600), key=lambda status: classify(status, {}, b"")):
        numbers = list(run)
        many = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
        yield f"| {many} | `{outcome}` |"


PAGES = {
    "failover.md": failover_page,
    "faults.md": fault_page,
    "errors.md": error_page,
    "configuration.md": configuration_page,
    "commands.md": command_page,
}


def stale() -> list[str]:
    """The pages that differ from what the code says."""
    return [
        name
        for name, page in PAGES.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text() != page()
    ]


def _subclasses(kind: type[errors.TidegateError]) -> Iterator[type[errors.TidegateError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


def _status(kind: type[errors.TidegateError]) -> int:
    return 502 if kind is errors.AllProvidersFailed else kind.status


def _keys(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        inner, mark = _section(field.annotation)
        default = field.get_default(call_default_factory=True)
        shown = "" if inner and not mark else _default(default)
        text = (field.description or "").replace("|", "\\|")
        yield f"`{path}`", _type(field.annotation), shown, text
        if inner is not None and not _repeats(inner, prefix):
            yield from _keys(inner, f"{path}{mark}.")


def _repeats(model: type[BaseModel], prefix: str) -> bool:
    """Overrides of redaction have the keys of `redaction`; listing them thrice helps nobody."""
    return model.__name__ == "Redaction" and prefix != ""


def _section(annotation: object) -> tuple[type[BaseModel] | None, str]:
    """The model inside an annotation, and how an element of it is written."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    origin = get_origin(annotation)
    for part in get_args(annotation):
        inner, mark = _section(part)
        if inner is not None:
            step = {tuple: "[]", dict: ".NAME"}.get(origin, "")  # type: ignore[call-overload]
            return inner, step + mark
    return None, ""


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin in (Union, UnionType):
        return " or ".join(_type(part) for part in arguments)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"mapping to {_type(arguments[1])}"
    if annotation is type(None):
        return "null"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    words = {str: "text", int: "integer", float: "number", bool: "true or false"}
    return words.get(annotation, "secret" if "Secret" in str(annotation) else str(annotation))


def _default(value: object) -> str:
    match value:
        case _ if value is PydanticUndefined:
            return "*required*"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Enum():
            return f"`{value.value}`"
        case () | []:
            return "`[]`"
        case tuple():
            return f"`[{', '.join(str(part) for part in value)}]`"
        case dict():
            return "`{}`" if not value else "`" + str(value).replace("None", "null") + "`"
        case _:
            return f"`{value}`"


def main() -> int:
    """Write the pages, or with --check say which are stale."""
    if "--check" in sys.argv[1:]:
        for name in stale():
            print(f"docs/reference/{name} is stale: run `make docs`", file=sys.stderr)
        return 4 if stale() else 0
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
