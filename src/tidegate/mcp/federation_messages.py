"""Where do names and URIs stand in the messages between a client and a federated server?

Lives here: both directions of one message: what the client wrote into the server's own words,
and what the server says into those of the client. Does not live here: the table of the names
(federation), what may be seen at all (listing, authorize).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from tidegate.jsonrpc import Call, Notification, Request, Tree
from tidegate.mcp.authorize import Subject
from tidegate.mcp.changes import wish_of
from tidegate.mcp.federation import SEPARATOR, Federation

_NAMED: Final = frozenset({"tools/call", "prompts/get"})
_LOCATED: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
_UI: Final = "ui/resourceUri"


@dataclass(frozen=True, slots=True)
class Aimed:
    """A message in the words of the server it is for; `server` is None if there is no such one.

    Then the message is the client's own.
    """

    server: str | None
    message: Call


def names_something(message: Call) -> bool:
    """Whether its method is one whose server is told by what the message names."""
    return message.method in {*_NAMED, *_LOCATED, "completion/complete"}


def aimed(message: Call, federation: Federation) -> Aimed:
    """Whom the message is for, and the message in the server's own words.

    For methods that name something (see names_something). A message whose params do not fit is
    for nobody, and stays as it is.
    """
    params = message.params or {}
    if message.method in _NAMED:
        return _renamed(message, params, "name", federation.own_name)
    if message.method in _LOCATED:
        return _renamed(message, params, "uri", federation.own_uri)
    ref = params.get("ref")
    if not isinstance(ref, dict):
        return Aimed(None, message)
    if ref.get("type") == "ref/prompt":
        own, member = federation.own_name, "name"
    else:
        own, member = federation.own_uri, "uri"
    found = _resolved(ref, member, own)
    if found is None:
        return Aimed(None, message)
    server, name = found
    return Aimed(server, _with(message, {**params, "ref": {**ref, member: name}}))


_Own = Callable[[str], tuple[str, str] | None]


def _resolved(holder: Mapping[str, object], member: str, own: _Own) -> tuple[str, str] | None:
    name = holder.get(member)
    return own(name) if isinstance(name, str) else None


def _renamed(message: Call, params: Tree, member: str, own: _Own) -> Aimed:
    found = _resolved(params, member, own)
    if found is None:
        return Aimed(None, message)
    server, name = found
    return Aimed(server, _with(message, {**params, member: name}))


def _with(message: Call, params: Tree) -> Call:
    if isinstance(message, Request):
        return Request(message.id, message.method, params)
    return Notification(message.method, params)


def wished(params: Mapping[str, object], federation: Federation) -> dict[str, Tree] | None:
    """What a subscriptions/listen asks of each server, in its own words; None if malformed.

    Every server is there, in the order of the file; the flags (toolsListChanged, ...) concern
    all of them, a URI only its own. URIs of nobody are left out.
    """
    wish = wish_of(params)
    if wish is None:
        return None
    wanted, uris = wish
    flags = {key: value for key, value in wanted.items() if key != "resourceSubscriptions"}
    own: dict[str, list[str]] = {name: [] for name in federation.names}
    for uri in uris:
        if (found := federation.own_uri(uri)) is not None:
            own[found[0]].append(found[1])
    return {
        name: {**flags, **({"resourceSubscriptions": named} if named else {})}
        for name, named in own.items()
    }


class Shown:
    """Says to clients what one server says; counts what has no name for them in `unusable`.

    Every method returns the same object where nothing names anything. Wherever a result holds
    one of the lists or blocks of MCP they are rewritten, whatever it answers: a name that is not
    the client's is a name that it cannot use.
    """

    __slots__ = ("_federation", "_server", "unusable")

    def __init__(self, federation: Federation, server: str) -> None:
        self._federation = federation
        self._server = server
        self.unusable = 0

    def subject(self, subject: Subject) -> Subject:
        """What a client asked for, under the name that it wrote."""
        if subject.kind == "resources":
            return replace(subject, name=self._uri(subject.name))
        return replace(subject, name=f"{self._server}{SEPARATOR}{subject.name}")

    def result(self, result: object) -> object:
        """A result with the client's names and URIs, without what has none."""
        if not isinstance(result, dict):
            return result
        changed: Tree = {}
        for member, rewrite in self._rewriters().items():
            items = result.get(member)
            if isinstance(items, list):
                written = [rewrite(item) for item in items]
                changed[member] = [item for item in written if item is not None]
        return {**result, **changed} if changed else result

    def error(self, error: object) -> object:
        """An error whose data may name the resource that was not found."""
        data = error.get("data") if isinstance(error, dict) else None
        if not isinstance(error, dict) or not isinstance(data, dict):
            return error
        return {**error, "data": self._located(data)}

    def params(self, method: str, params: object) -> object:
        """The params of a notification: a changed resource, or what a subscription hears of."""
        if not isinstance(params, dict):
            return params
        if method == "notifications/resources/updated":
            return self._located(params)
        heard = params.get("notifications")
        if method != "notifications/subscriptions/acknowledged" or not isinstance(heard, dict):
            return params
        uris = heard.get("resourceSubscriptions")
        if not isinstance(uris, list):
            return params
        shown = [self._uri(uri) for uri in uris if isinstance(uri, str)]
        return {**params, "notifications": {**heard, "resourceSubscriptions": shown}}

    def _rewriters(self) -> Mapping[str, Callable[[object], object | None]]:
        return {
            "tools": self._tool,
            "prompts": self._named,
            "resources": self._located,
            "resourceTemplates": self._template,
            "contents": self._located,
            "content": self._block,
            "messages": self._prompt_message,
        }

    def _uri(self, uri: str) -> str:
        return self._federation.shown_uri(self._server, uri)

    def _named(self, item: object) -> object | None:
        name = item.get("name") if isinstance(item, dict) else None
        shown = self._federation.shown_name(self._server, name) if isinstance(name, str) else None
        if shown is None or not isinstance(item, dict):
            self.unusable += 1
            return None
        return {**item, "name": shown}

    def _tool(self, item: object) -> object | None:
        """A tool, which may point at the resource that draws it (the extension for apps)."""
        named = self._named(item)
        meta = named.get("_meta") if isinstance(named, dict) else None
        if not isinstance(named, dict) or not isinstance(meta, dict):
            return named
        changed: Tree = {}
        if isinstance(uri := meta.get(_UI), str):
            changed[_UI] = self._uri(uri)
        drawn = meta.get("ui")
        if isinstance(drawn, dict) and isinstance(uri := drawn.get("resourceUri"), str):
            changed["ui"] = {**drawn, "resourceUri": self._uri(uri)}
        return {**named, "_meta": {**meta, **changed}} if changed else named

    def _located(self, item: object) -> object:
        uri = item.get("uri") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(uri, str):
            return item
        return {**item, "uri": self._uri(uri)}

    def _template(self, item: object) -> object:
        template = item.get("uriTemplate") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(template, str):
            return item
        return {**item, "uriTemplate": self._uri(template)}

    def _block(self, block: object) -> object:
        """A block of content: a link to a resource, or one that holds it."""
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "resource_link" and isinstance(block, dict):
            uri = block.get("uri")
            shown = self._federation.shown_link(self._server, uri) if isinstance(uri, str) else uri
            return block if shown is uri else {**block, "uri": shown}
        if kind == "resource" and isinstance(block, dict):
            return {**block, "resource": self._located(block.get("resource"))}
        return block

    def _prompt_message(self, message: object) -> object:
        if not isinstance(message, dict) or "content" not in message:
            return message
        content = message["content"]
        if isinstance(content, list):
            return {**message, "content": [self._block(block) for block in content]}
        return {**message, "content": self._block(content)}


__all__ = ["Aimed", "Shown", "aimed", "names_something", "wished"]
