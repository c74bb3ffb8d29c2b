"""What is a client told that may not do this?

Lives here: the answer to a denied or unreadable call in each error profile, and the one answer
that a hidden and an unknown thing share. Does not live here: the decision (authorize), HTTP.
"""

from dataclasses import dataclass
from typing import Final, Literal

from tidegate.jsonrpc import Code, Id, Request, Tree, error_body, result_body
from tidegate.mcp.authorize import (
    ARGUMENTS,
    INVALID_CURSOR,
    INVALID_PARAMS,
    LISTED_MEMBER,
    NOTHING_ALLOWED,
    UNKNOWN_METHOD,
    UNKNOWN_TASK,
    Subject,
    subject_of,
)
from tidegate.policy import Deny, Principal

Profile = Literal["brief", "spec"]
Hiding = Literal["off", "list", "full"]

_MAX_SHOWN_CHARS: Final = 256
_MAX_URI_CHARS: Final = 2048
_SINGULAR: Final = {"tools": "tool", "prompts": "prompt", "resources": "resource"}
_UNREADABLE: Final = {
    UNKNOWN_METHOD: (Code.METHOD_NOT_FOUND, "Method not found", 404),
    INVALID_PARAMS: (Code.INVALID_PARAMS, "Invalid params", 400),
    INVALID_CURSOR: (Code.INVALID_PARAMS, "Invalid cursor", 400),
    UNKNOWN_TASK: (Code.INVALID_PARAMS, "Unknown task", 400),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of our own: `status` counts outside of a batch, `challenge` is for a 403."""

    body: Tree
    status: int = 200
    challenge: str | None = None


def refusal(
    request: Request,
    deny: Deny,
    principal: Principal,
    *,
    errors: Profile,
    hide: Hiding,
    modern: bool,
) -> Refusal:
    """The answer to a denied request.

    With `hide` full, a denied name is answered as an unknown one; one that is listed, and of which
    only these arguments were denied, is not. A list of which nothing may
    be used is an empty list. `modern` clients expect the status to follow the code.
    """
    if deny.reason == NOTHING_ALLOWED:
        return Refusal(_empty_list(request, modern=modern))
    if deny.reason in _UNREADABLE:
        code, text, status = _UNREADABLE[deny.reason]
        return Refusal(error_body(request.id, code, text), status if modern else 200)
    subject = subject_of(request) or Subject("tools", request.method)
    if hide == "full" and deny.reason != ARGUMENTS:
        return unknown(request.id, subject, errors=errors, modern=modern)
    if errors == "spec":
        return _forbidden(request.id, subject, deny)
    return _unauthorized(request.id, subject, deny, principal)


def unknown(id: Id, subject: Subject, *, errors: Profile, modern: bool) -> Refusal:  # noqa: A002
    """There is no such thing: the same bytes whether it is hidden or does not exist.

    A resource is named by the URI that was asked for (2026-07-28, server/resources).
    """
    what = _SINGULAR[subject.kind]
    if errors == "brief" and subject.kind == "tools":
        return Refusal(error_body(id, Code.METHOD_NOT_FOUND, f"Unknown {what}"))
    named = subject.kind == "resources" and len(subject.name) <= _MAX_URI_CHARS
    data: Tree | None = {"uri": subject.name} if named else None
    body = error_body(id, Code.INVALID_PARAMS, f"Unknown {what}", data)
    return Refusal(body, 400 if modern else 200)


def _unauthorized(id: Id, subject: Subject, deny: Deny, principal: Principal) -> Refusal:  # noqa: A002
    """HTTP 200: a client takes another status for a dead transport, not for a decision."""
    data: Tree = {
        _SINGULAR[subject.kind]: subject.name[:_MAX_SHOWN_CHARS],
        "required_role": deny.required_role,
        "your_role": principal.first_role,
    }
    called = "Tool Call" if subject.kind == "tools" else "Request"
    return Refusal(error_body(id, Code.UNAUTHORIZED, f"Unauthorized {called}", data))


def _forbidden(id: Id, subject: Subject, deny: Deny) -> Refusal:  # noqa: A002
    """HTTP 403 with the challenge of RFC 6750 3.1, for clients that can ask for more scope."""
    what = _SINGULAR[subject.kind]
    data: Tree = {"reason": f"{what}_denied", what: subject.name[:_MAX_SHOWN_CHARS]}
    challenge = 'Bearer error="insufficient_scope"'
    if deny.required_role is not None and '"' not in deny.required_role:
        challenge += f', scope="{deny.required_role}"'
        data["required_role"] = deny.required_role
    body = error_body(id, Code.FORBIDDEN, "Forbidden", data)
    return Refusal(body, 403, challenge)


def _empty_list(request: Request, *, modern: bool) -> Tree:
    result: Tree = {LISTED_MEMBER[request.method]: []}
    if modern:
        result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return result_body(request.id, result)


__all__ = ["Hiding", "Profile", "Refusal", "refusal", "unknown"]
