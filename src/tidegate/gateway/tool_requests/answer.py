"""What of an upstream's answer may this client see?

Lives here: the stages every message of an answer passes: cleaned, filtered, masked, its id given
back. Does not live here: the stages themselves (mcp, redaction), when they run (tool_traffic), in
which form an answer leaves (client_side).
"""

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tidegate import strictjson
from tidegate.gateway.respond import Header
from tidegate.gateway.servers.upstream import NEEDS_SESSION, ServerFailed
from tidegate.gateway.tool_requests import pages
from tidegate.gateway.tool_requests.call import may_use
from tidegate.gateway.tool_requests.turn import Plan, Turn
from tidegate.jsonrpc import Code, Id, Notification, Request, Tree, typed
from tidegate.mcp import listing
from tidegate.mcp.answers import (
    Ask,
    Note,
    Reply,
    asks_for_session,
    clean,
    generic,
    restored,
    says_unknown,
)
from tidegate.mcp.authorize import LISTED_KIND, Subject, subject_of
from tidegate.mcp.denials import Refusal, unknown
from tidegate.mcp.eras import LEGACY
from tidegate.mcp.federation_messages import Shown
from tidegate.mcp.introductions import DESCRIBING
from tidegate.mcp.meta_keys import SUBSCRIPTION_KEY
from tidegate.mcp.sessions import RunningCall, Session, Sessions
from tidegate.mcp.stream_places import PRIMED
from tidegate.redaction import Counts

if TYPE_CHECKING:
    from tidegate.mcp.pins import Verdicts


@dataclass(frozen=True, slots=True)
class Answer:
    """The last message for one request: its JSON value, and its bytes if they are at hand.

    `own`: it is a refusal of ours, which looks the same whether a server was asked or not.
    """

    message: Tree
    status: int = 200
    raw: bytes | None = None
    headers: tuple[Header, ...] = ()
    own: bool = False

    @property
    def data(self) -> bytes:
        """The bytes to send; non-ASCII text of our own refusals is escaped, so it is seen."""
        return strictjson.dumps(self.message) if self.raw is None else self.raw

    @classmethod
    def of(cls, refusal: Refusal) -> "Answer":
        """Our own answer. Names are shown escaped: an invisible character must not stay so."""
        raw = json.dumps(refusal.body, separators=(",", ":")).encode("ascii")
        challenge = refusal.challenge
        headers = () if challenge is None else ((b"www-authenticate", challenge.encode("latin-1")),)
        return cls(refusal.body, refusal.status, raw, headers, own=True)


class Shaper:
    """Turns the messages of one upstream answer into what the client may see.

    `opened` is the session this answer opened; it learns its version from the answer. `begun` is
    the task this answer began, and the tool behind it. `pinned` is
    what the pins say about a list of tools; without it mode block shows none.
    """

    __slots__ = (
        "_may_see",
        "_server",
        "_sessions",
        "_shown",
        "_turn",
        "begun",
        "call",
        "counts",
        "opened",
        "pinned",
        "plan",
        "running",
    )

    def __init__(self, turn: Turn, plan: Plan, running: RunningCall, sessions: Sessions) -> None:
        self._turn = turn
        self._server = plan.server
        self._may_see = partial(turn.may_see, plan.server)
        federation = turn.policy.federation
        self._shown = None if federation is None else Shown(federation, plan.server.name)
        self.plan = plan
        self.call = plan.request
        self.opened: Session | None = None
        self.begun: tuple[str, str] | None = None
        self.pinned: Verdicts | None = None
        self.counts = Counts()
        self.running = running
        self._sessions = sessions

    def learn(self, message: Reply | Note | Ask) -> None:
        """What later messages are judged by. On the loop: all requests share what it writes."""
        session = self._turn.session
        if isinstance(message, Reply):
            if "result" in message.message:
                result = message.message["result"]
                self._remember(result)
                if self.call.method in LISTED_KIND:
                    pages.give(self._turn, self.call.method, result, self._sessions)
        elif isinstance(message, Ask) and session is not None:
            session.questions.put(typed(message.id), False)

    def reply(self, reply: Reply, status: int) -> Answer:
        """The answer to the client's request; `status` is the upstream's. Raises ServerFailed.

        Writes to this request's own things only: of a large message it runs in a thread.
        """
        turn, request_id = self._turn, self._turn.responder.request_id
        if (subject := self._unknown(reply.message)) is not None:
            errors, modern = turn.policy.errors, turn.revision.modern
            if self._shown is not None:
                subject = self._shown.subject(subject)
            return Answer.of(unknown(self.call.id, subject, errors=errors, modern=modern))
        if turn.lacks_session and asks_for_session(reply.message, status):
            raise ServerFailed(NEEDS_SESSION)
        cleaned = clean(reply, request_id)
        message = cleaned.message
        if cleaned is not reply and _is_internal(message):
            raise ServerFailed("internal_error")
        member = "result" if "result" in message else "error"
        value = message[member]
        if member == "result":
            value = self._filtered(value)
        lists = self.call.method in LISTED_KIND
        shown = self._own_subscription(self._masked(value, lists=lists))
        if lists and member == "result":
            pages.check_next(shown)
        if self._shown is not None:
            shown = self._shown.result(shown) if member == "result" else self._shown.error(shown)
        if shown is not message[member] or typed(self.running.upstream_id) != typed(self.call.id):
            message = {"jsonrpc": "2.0", "id": self.call.id, member: shown}
        elif cleaned is not reply:
            message = {**message, "id": self.call.id}
        raw = reply.raw if message is reply.message else None
        return Answer(message, self._status(message, status), raw)

    def aside(self, aside: Note | Ask) -> bytes | None:
        """A notification or a question for the client; None if it must not get it. As `reply`."""
        turn = self._turn
        params = aside.message.get("params")
        known = params if isinstance(params, dict) else None
        if isinstance(aside, Note):
            told = Notification(aside.method, known)
            if not turn.may_hear(self._server, told):
                return None
            # What comes in an upstream session of the client's own is about nobody else.
            if turn.upstream_session is None and not listing.is_of_own_task(told, self._owns):
                return None
        elif turn.upstream_session is None:
            return None  # nowhere to send the client's answer; and never in the modern era
        shown = self._own_subscription(self._masked(params, uri=True))
        if self._shown is not None:
            shown = self._shown.params(aside.method, shown)
        if shown is params:
            return aside.raw or strictjson.dumps(aside.message)
        return strictjson.dumps({**aside.message, "params": shown})

    @property
    def turn(self) -> Turn:
        """The request of whose answer this is."""
        return self._turn

    @property
    def unusable(self) -> int:
        """How many things of a list were left out because no client could name them."""
        return 0 if self._shown is None else self._shown.unusable

    def lighten(self) -> None:
        """Forget what the call carried: it has been sent, and its answer may be long in coming."""
        call = self.call
        kept = {key: value for key, value in (call.params or {}).items() if key != "arguments"}
        self.call = self.plan.message = Request(call.id, call.method, kept)

    @property
    def primes(self) -> bool:
        """Whether the client knows events that have an id and nothing else."""
        return self._turn.revision.version == PRIMED

    @property
    def upstream_id(self) -> Id:
        """Under which id the server knows the call."""
        return self.running.upstream_id

    def note_counts(self) -> None:
        """Write down what was masked so far."""
        mode, found = self._server.masking.tool_results, self.counts
        self._turn.trail.counts("redact_result", mode, found, unscanned=found.unscanned)

    def failed(self) -> Answer:
        """The one answer for whatever went wrong behind us."""
        return Answer(generic(self.call.id, self._turn.responder.request_id))

    def _filtered(self, result: object) -> object:
        turn, method = self._turn, self.call.method
        if method in LISTED_KIND:
            pages.check(turn, self._server, method, result)
        if method in DESCRIBING and not may_use(turn, self._server):
            result = listing.without_offer(result)
        elif method in DESCRIBING and turn.hides:
            result = listing.with_usable_offer(result, partial(turn.may_send, self._server))
        if turn.hides:
            result = listing.filter_result(result, self._may_see)
        if self._server.pin == "block" and method == "tools/list":
            result = listing.filter_result(result, self._is_approved)
        if method == "resources/read":
            asked = (self.call.params or {}).get("uri")
            result = listing.readable(result, asked, partial(turn.is_denied, self._server))
        if method == "tasks/list":
            result = listing.filter_tasks(result, self._owns)
        return listing.made_private(result)

    def _unknown(self, message: Tree) -> Subject | None:
        """What was asked for, if the server says in its own way that there is none and we have not
        asked its list before: what a tool of the list says is the answer of that tool."""
        subject = subject_of(self.call)
        hides_all = self._turn.policy.hide_denied == "full"
        if subject is None or not hides_all or self.plan.is_listed:
            return None
        return subject if says_unknown(message, subject) else None

    def _owns(self, task_id: str) -> bool:
        holder = self._sessions.task_tool(self._turn.principal, self._server.name, task_id)
        return holder is not None

    def _is_approved(self, subject: Subject) -> bool:
        if subject.kind != "tools":
            return True
        return self.pinned is not None and not self.pinned.refuses(subject.name)

    def _masked(self, value: object, *, lists: bool = False, uri: bool = False) -> object:
        masked, found = self._server.masking.mask_result(value, self._turn.principal.tenant)
        self.counts.add(found)
        return value if masked is value else restored(value, masked, lists=lists, uri=uri)

    def _remember(self, result: object) -> None:
        """What later answers go by: a session's version, a server's, the tool that began a task."""
        if self.opened is not None and isinstance(result, dict):
            version = result.get("protocolVersion")
            self.opened.version = version if version in LEGACY else None
        if self.call.method == "server/discover" and isinstance(result, dict):
            self._sessions.learn_versions(self._server.key, result.get("supportedVersions"))
        if self.call.method != "tools/call" or not isinstance(result, dict):
            return
        task = result.get("task")
        holder = task if isinstance(task, dict) else result
        task_id, tool = holder.get("taskId"), subject_of(self.call)
        if isinstance(task_id, str) and tool is not None:
            principal, name = self._turn.principal, self._server.name
            self._sessions.begin_task(principal, name, task_id, tool.name)
            self.begun = task_id, tool.name

    def _own_subscription(self, params: object) -> object:
        """`params` under the client's id, where the upstream repeats the one we gave the call."""
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(meta, dict):
            return params
        ours, theirs = self.running.upstream_id, self.call.id
        if typed(ours) == typed(theirs) or meta.get(SUBSCRIPTION_KEY) not in (ours, str(ours)):
            return params
        named: Id = str(theirs) if isinstance(meta[SUBSCRIPTION_KEY], str) else theirs
        return {**params, "_meta": {**meta, SUBSCRIPTION_KEY: named}}

    def _status(self, message: Tree, status: int) -> int:
        """Errors of a modern server keep their status; anything else is an answer: 200."""
        error = message.get("error")
        if not isinstance(error, dict) or error.get("code") == Code.INTERNAL_ERROR:
            return 200
        kept = (400, 404) if self._turn.revision.modern else (400,)
        return status if status in kept else 200


def _is_internal(message: Tree) -> bool:
    error = message.get("error")
    return isinstance(error, dict) and error.get("code") == Code.INTERNAL_ERROR


__all__ = ["Answer", "Shaper"]
