"""Why did this request end as it did, in one sentence?

Read off the word for its end and the step that decided. Lives here: the sentences. Does not live
here: what a step holds (entries), the rest of the page (explain).
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from tidegate import errors

Step = Mapping[str, object]
Steps = Sequence[Step]

_ASKED = ("tool", "resource", "prompt")
_PLACES = MappingProxyType(
    {"redact_arguments": "arguments", "redact_result": "result, after the server had answered"}
)
_SKIPPED = MappingProxyType({"open": "its breaker is open", "cooling": "it rests"})


def why(body: Mapping[str, object]) -> str:
    """The sentence for the body of an end; "" where nothing happened that needs one.

    Total: a step that says less than expected makes a sentence that says less.
    """
    outcome = str(body.get("outcome", ""))
    steps = cast("Steps", body.get("steps", ()))
    tell = _TOLD.get(outcome)
    return tell(steps) if tell is not None else _constants().get(outcome, "")


def _constants() -> dict[str, str]:
    """What the client was told, for codes whose sentence is always the same."""
    found: dict[str, str] = {}
    for name in errors.__all__:
        kind: object = getattr(errors, name)
        if (
            isinstance(kind, type)
            and issubclass(kind, errors.TidegateError)
            and "public_message" in vars(kind)
        ):
            # 408 and 421 share the code of the plain invalid request, which stands first.
            found.setdefault(kind.code, kind.public_message)
    return found | {errors.InvalidRequest.code: errors.InvalidRequest.public_message}


def _answered(steps: Steps) -> str:
    attempts = _stage(steps, "attempt")
    if len(attempts) < 2 or attempts[-1].get("verdict") != "ok":
        return ""
    return f"{_target(attempts[-1])} answered after {_each(attempts[:-1])}."


def _rate_limited(steps: Steps) -> str:
    step = _refusing_limit(steps)
    if step is None:
        return "A limit was full."
    used = f"{_value(step, 'used')} of {_value(step, 'cap')} used, "
    asked = f"{_value(step, 'requested')} more asked for"
    values = _values(step)
    scope = f" (per {values['scope']})" if "scope" in values else ""
    name = f"{_value(step, 'limit')}{scope}"
    text = f"Limit {name} was full: {used if 'used' in values else ''}{asked}."
    if "retry_after_s" in values:
        text += f" There is room again after {values['retry_after_s']} s."
    return text


def _never_fits(steps: Steps) -> str:
    step = _refusing_limit(steps)
    if step is None:
        return "It asks for more than a limit ever allows."
    return (
        f"It asks for {_value(step, 'requested')} of limit {_value(step, 'limit')},"
        f" which never allows more than {_value(step, 'cap')}: waiting does not help."
    )


def _blocked(steps: Steps) -> str:
    found = [step for step in steps if step.get("verdict") == "block"]
    who = f"Detector {_value(found[-1], 'detector')}" if found else "A detector"
    place = _PLACES.get(str(found[-1].get("stage"))) if found else None
    if place is None:
        place = "answer" if _stage(steps, "attempt") else "request"
    return f"{who} blocks what it found in the {place}."


def _unchecked(steps: Steps) -> str:
    asked = _stage(steps, "classifier")
    if not asked:
        return "Redaction failed, and what it could not check was not passed on."
    return (
        f"The classifier gave no usable answer ({_value(asked[-1], 'reason')}) for the"
        f" {_value(asked[-1], 'mode')}, and what it has not read is not passed on."
    )


def _all_failed(steps: Steps) -> str:
    attempts = _stage(steps, "attempt")
    if not attempts:
        return "No target could be asked: all of them rest after failures."
    wished = any(_values(step).get("fallback") is False for step in _stage(steps, "route"))
    why = "; the client wanted no other target asked" if wished else ""
    return f"No target could serve it: {_each(attempts)}{why}."


def _provider(did: str) -> Callable[[Steps], str]:
    def tell(steps: Steps) -> str:
        attempts = _stage(steps, "attempt")
        if not attempts:
            return f"The provider {did}."
        return f"{_target(attempts[-1])}{_how(attempts[-1])} {did}."

    return tell


def _denied(steps: Steps) -> str:
    step = _denial(steps)
    return f"Rule {step.get('rule')} denies {_thing(step)}."


def _no_rule(steps: Steps) -> str:
    return f"No rule allows {_thing(_denial(steps))}, and what nothing allows is denied."


def _arguments(steps: Steps) -> str:
    step = _denial(steps)
    who = "No rule allows" if step.get("rule") == "default" else f"Rule {step.get('rule')} denies"
    return f"{who} {_thing(step)} with these arguments."


def _not_offered(steps: Steps) -> str:
    found = _stage(steps, "offer")
    what = _thing(found[-1]) if found else "a tool of that name"
    return f"The MCP server does not list {what}, which is answered like one that is denied."


def _server_failed(steps: Steps) -> str:
    upstream = _stage(steps, "upstream")
    if not upstream and (pin := _refusing_pin(steps)):
        reason = str(_value(pin, "reason")).removeprefix("pin_")
        return (
            f"The MCP server's list of tools, which is compared with its pins, failed ({reason})."
        )
    reason = f" ({_value(upstream[-1], 'reason')})" if upstream else ""
    return f"The MCP server gave no usable answer{reason}."


def _refusing_pin(steps: Steps) -> Step:
    denials = [step for step in _stage(steps, "pin") if step.get("verdict") == "deny"]
    return denials[0] if denials else {}


def _pin(said: str) -> Callable[[Steps], str]:
    def tell(steps: Steps) -> str:
        step = _refusing_pin(steps)
        values = _values(step)
        if "server" not in values:
            return f"The definition of the tool {said}."
        name = f"{values['server']}/{values.get('tool', '?')}"
        look = f"tidegate mcp pins approve --show {name}"
        return f"The definition of {name} {said}: {look}"

    return tell


def _always(sentence: str) -> Callable[[Steps], str]:
    return lambda _steps: sentence


_TOLD: Mapping[str, Callable[[Steps], str]] = MappingProxyType(
    {
        "ok": _answered,
        "cancelled": _always("The client left before its answer was complete."),
        "denied": _denied,
        "no_rule": _no_rule,
        "arguments": _arguments,
        "not_offered": _not_offered,
        "nothing_allowed": _always("No rule allows this principal anything of that kind."),
        "pin_changed": _pin("is not the one that was approved"),
        "pin_new": _pin("came after the first list and was not approved"),
        "pin_flagged": _pin("is written to be overlooked and was not approved"),
        "pin_unpinned": _always("The server has not listed the tool, so nobody has approved it."),
        "odd_name": _always("The name has characters that no name of a tool may have."),
        "unknown_method": _always("The method is not one that may pass."),
        "invalid_params": _always("The parameters do not say what is asked for."),
        "invalid_cursor": _always("The cursor was not given to this principal for this list."),
        "unknown_task": _always("The task was not begun by this principal."),
        "gateway.rate_limited": _rate_limited,
        "gateway.request_exceeds_limit": _never_fits,
        "gateway.content_blocked": _blocked,
        "gateway.redaction_failed": _unchecked,
        "gateway.all_providers_failed": _all_failed,
        "gateway.upstream_rejected_request": _provider(
            "refused the request as invalid, and another would do the same"
        ),
        "gateway.upstream_credential": _provider("refused the gateway's own credential"),
        "context_length_exceeded": _provider(
            "takes no prompt of that length, and no target with a larger declared window was left"
        ),
        "content_filter": _provider(
            "refused the content by its own policy, which is never routed around"
        ),
        "gateway.upstream_interrupted": _provider("broke off after the answer had begun to leave"),
        "gateway.upstream_failed": _server_failed,
    }
)


def _stage(steps: Steps, stage: str) -> list[Step]:
    return [step for step in steps if step.get("stage") == stage]


def _refusing_limit(steps: Steps) -> Step | None:
    denials = [step for step in _stage(steps, "limits") if step.get("verdict") == "deny"]
    return denials[-1] if denials else None


def _denial(steps: Steps) -> Step:
    denials = [step for step in _stage(steps, "authorize") if step.get("verdict") == "deny"]
    return denials[0] if denials else {}


def _thing(step: Step) -> str:
    values = _values(step)
    for kind in _ASKED:
        if kind in values:
            return f"{kind} {values[kind]}"
    return str(values.get("method", "it"))


def _each(attempts: Steps) -> str:
    return ", ".join(_attempt(step) for step in attempts)


def _attempt(step: Step) -> str:
    verdict = str(step.get("verdict"))
    if verdict in _SKIPPED:
        return f"{_target(step)} skipped ({_SKIPPED[verdict]}{_until(step)})"
    return f"{_target(step)} {verdict.replace('_', ' ')}{_how(step)}"


def _target(step: Step) -> str:
    """The provider, and what tells this target from its others."""
    values = _values(step)
    model = f"/{values['model']}" if "model" in values else ""
    credential = f" #{values['credential']}" if "credential" in values else ""
    return f"{values.get('provider', '?')}{model}{credential}"


def _until(step: Step) -> str:
    wait_s = _values(step).get("wait_s")
    return f" for {wait_s:.1f} s more" if isinstance(wait_s, int | float) and wait_s else ""


def _how(step: Step) -> str:
    values = _values(step)
    status, took_ms = values.get("status"), values.get("took_ms")
    words = [f"HTTP {status}"] if status else []
    if isinstance(took_ms, int | float):
        words.append(f"{took_ms / 1000:.1f} s" if took_ms > 999 else f"{took_ms:.0f} ms")
    return f" ({', '.join(words)})" if words else ""


def _values(step: Step) -> Mapping[str, object]:
    return cast("Mapping[str, object]", step.get("values", {}))


def _value(step: Step, name: str) -> object:
    return _values(step).get(name, "?")


__all__ = ["why"]
