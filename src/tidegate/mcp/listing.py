"""What of a list may this principal see?

Lives here: the filter over tools, prompts, resources, templates and tasks in any result, whether
a list can be filtered at all, and the filter over what a subscription names; all of it asks the
same decision that calls ask. Does not live here: the decision (authorize), whether hiding is on
(gateway.tool_traffic), whose a page is (cursors).
"""

from collections.abc import Callable, Mapping
from typing import Final

from tidegate.jsonrpc import Notification, Request, Tree
from tidegate.mcp.authorize import LISTED_MEMBER, Subject
from tidegate.mcp.changes import LISTS, wish_of
from tidegate.mcp.folding import fold, folded_names

Visible = Callable[[Subject], bool]


def _named(item: Mapping[str, object], member: str) -> str | None:
    name = item.get(member)
    return name if isinstance(name, str) else None


def _subject_in(member: str, item: object) -> Subject | None:
    """What an element of a list describes; None if it cannot be told."""
    if not isinstance(item, dict):
        return None
    if member in {"tools", "prompts"}:
        name = _named(item, "name")
        return Subject("tools" if member == "tools" else "prompts", name) if name else None
    key = "uri" if member == "resources" else "uriTemplate"
    uri = _named(item, key)
    return Subject("resources", uri, template=member != "resources") if uri else None


_LISTS: Final = ("tools", "prompts", "resources", "resourceTemplates")
_FOLDED: Final = frozenset(map(fold, _LISTS))
_MOST_NAME_CHARS: Final = 64
"""A longer name is none of these, with however many characters that nobody sees."""


def filter_result(result: object, visible: Visible) -> object:
    """`result` without what must not be seen; the same object if nothing is hidden.

    Every list of things in the result is filtered, whatever method it answers. An element
    without a readable name is hidden, and so is a list that is none or that stands under another
    spelling of its name, which some client would read (of too many names outside of ASCII to look
    at, each). An emptied list stays a list, and
    everything beside it, the cursor of the next page above all, stays as it is.
    """
    if not isinstance(result, dict):
        return result
    changed: Tree = {}
    hidden = _disguised(result)
    for member in _LISTS:
        items = result.get(member)
        if items is None:
            continue
        if not isinstance(items, list):
            hidden.add(member)
            continue
        kept = [item for item in items if _is_visible(_subject_in(member, item), visible)]
        if len(kept) != len(items):
            changed[member] = kept
    if not changed and not hidden:
        return result
    return {key: value for key, value in {**result, **changed}.items() if key not in hidden}


def is_list(method: str, result: object) -> bool:
    """Whether `result` is the list that `method` asks for, read alike by everybody.

    Objects in a list, in the member of that very name, and in no other that a careless client
    would take for it. What is not is no list with nothing in it: nobody can say what of it may be
    seen, and an empty success would say that there is nothing. So it is a failure of the server
    wherever something of a list has to be taken away; where nothing has to, what the server
    answers is its own affair and passes as it came. With more names outside of ASCII than
    `folded_names` takes it is none either. Cost: its members, and one look at each item.
    """
    member = LISTED_MEMBER[method]
    if not isinstance(result, dict) or not isinstance(items := result.get(member), list):
        return False
    if not all(isinstance(item, dict) for item in items):
        return False
    others = [name for name in result if name != member and len(name) <= _MOST_NAME_CHARS]
    folded = folded_names(others)
    return folded is not None and fold(member) not in folded


def _disguised(result: Tree) -> set[str]:
    """The members that some client would take for a list."""
    others = [name for name in result if name not in _LISTS and len(name) <= _MOST_NAME_CHARS]
    folded = folded_names(others)
    if folded is None:
        return {name for name in others if not name.isascii() or fold(name) in _FOLDED}
    return {name for name, seen in zip(others, folded, strict=True) if seen in _FOLDED}


def _is_visible(subject: Subject | None, visible: Visible) -> bool:
    return subject is not None and visible(subject)


def filter_tasks(result: object, owned: Callable[[str], bool]) -> object:
    """The answer to tasks/list with the caller's own tasks only; the same object if all are."""
    tasks = result.get("tasks") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(tasks, list):
        return result
    kept = [
        task for task in tasks if isinstance(task, dict) and owned(_named(task, "taskId") or "")
    ]
    return result if len(kept) == len(tasks) else {**result, "tasks": kept}


def listed_tasks(result: object) -> list[str]:
    """The tasks that an answer to tasks/list names."""
    tasks = result.get("tasks") if isinstance(result, dict) else None
    named = [_named(task, "taskId") for task in tasks or () if isinstance(task, dict)]
    return [task_id for task_id in named if task_id]


_NAMING_RESOURCES: Final = frozenset(
    {"resources/list", "resources/templates/list", "resources/read"}
)
_A_BYTE_OF_A_URI: Final = 16


def effort(method: str, size_bytes: int) -> int:
    """How many bytes of any other answer take as long to judge as so many of this one.

    A URI that deny rules may be meant by is read in every way that some server reads it.
    """
    return size_bytes * _A_BYTE_OF_A_URI if method in _NAMING_RESOURCES else size_bytes


def readable(result: object, asked: object, denied: Callable[[Subject], bool]) -> object:
    """The answer to resources/read without what is denied to the caller; the same if nothing is.

    A server may answer with more than the one resource that was `asked` for: with the parts of a
    folder for example, or with the place where it found it. So nothing has to be allowed once
    more, but what a rule denies stays denied. Source: MCP, server/resources, resources/read.
    """
    contents = result.get("contents") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(contents, list):
        return result
    kept = [each for each in contents if not _is_denied(each, asked, denied)]
    return result if len(kept) == len(contents) else {**result, "contents": kept}


def _is_denied(content: object, asked: object, denied: Callable[[Subject], bool]) -> bool:
    uri = content.get("uri") if isinstance(content, dict) else None
    return isinstance(uri, str) and uri != asked and denied(Subject("resources", uri))


def without_offer(result: object) -> object:
    """What a server says of itself, for somebody who may use nothing of it: no more than that it
    is there."""
    if not isinstance(result, dict):
        return result
    kept = {key: value for key, value in result.items() if key != "instructions"}
    return {**kept, "capabilities": {}} if "capabilities" in kept else kept


_LISTED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": ("resources/list",),
    "completions": ("prompts/list", "resources/list"),
    "tasks": ("tasks/list",),
}
"""Capabilities, and the lists of what they are about."""


def with_usable_offer(result: object, lists: Callable[[str], bool]) -> object:
    """What a server says of itself, without the capabilities of kinds of which the caller may ask
    for no list (`lists`: whether it may send this method); the same object if there are none.

    What is about no kind (logging, experimental, extensions) stays.
    """
    offered = result.get("capabilities") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(offered, dict):
        return result
    kept = {
        name: value
        for name, value in offered.items()
        if name not in _LISTED_BY or any(map(lists, _LISTED_BY[name]))
    }
    return result if len(kept) == len(offered) else {**result, "capabilities": kept}


def made_private(result: object) -> object:
    """`result` with `cacheScope` private: what passed an authorization is not for others."""
    if not isinstance(result, dict) or result.get("cacheScope", "private") == "private":
        return result
    return {**result, "cacheScope": "private"}


_MOST_TASKS: Final = 100


def subscribed_tasks(request: Request) -> list[str]:
    """The tasks that a subscriptions/listen names (the extension for tasks), up to a hundred."""
    wanted = (request.params or {}).get("notifications")
    named = wanted.get("taskIds") if isinstance(wanted, dict) else None
    ids = named[:_MOST_TASKS] if isinstance(named, list) else []
    return [each for each in ids if isinstance(each, str)]


def narrow_subscription(
    request: Request,
    visible: Visible,
    lists: Callable[[str], bool],
    owned: Callable[[str], bool],
) -> Request | None:
    """A subscriptions/listen without what the caller may not hear of; None if it is malformed or
    names more resources than one client may wait for.

    `lists`: whether it may send this method, `owned`: whether a task is its own. What the filter
    of an extension names that is not known here is left out. The same object if nothing is taken
    away. The upstream then acknowledges what is left.
    """
    params = request.params or {}
    wish = wish_of(params)
    if wish is None:
        return None
    wanted, uris = wish
    kept: Tree = {}
    for member, value in wanted.items():
        if member in LISTS:
            if lists(LISTS[member]):
                kept[member] = value
        elif member == "resourceSubscriptions":
            kept[member] = [uri for uri in uris if visible(Subject("resources", uri))]
        elif member == "taskIds":
            kept[member] = [each for each in subscribed_tasks(request) if owned(each)]
    if kept == wanted:
        return request
    return Request(request.id, request.method, {**params, "notifications": kept})


def may_hear(notification: Notification, visible: Visible) -> bool:
    """Whether a notification of an upstream may reach the caller: not about a hidden resource."""
    if notification.method != "notifications/resources/updated":
        return True
    uri = (notification.params or {}).get("uri")
    return isinstance(uri, str) and visible(Subject("resources", uri))


def is_of_own_task(notification: Notification, owned: Callable[[str], bool]) -> bool:
    """Whether a notification tells of no task, or of one that is the caller's."""
    if not notification.method.startswith("notifications/tasks"):
        return True
    task_id = (notification.params or {}).get("taskId")
    return isinstance(task_id, str) and owned(task_id)


__all__ = [
    "Visible",
    "effort",
    "filter_result",
    "filter_tasks",
    "is_list",
    "is_of_own_task",
    "listed_tasks",
    "made_private",
    "may_hear",
    "narrow_subscription",
    "readable",
    "subscribed_tasks",
    "with_usable_offer",
    "without_offer",
]
