"""What is to be remembered about one request?

Lives here: the trail that a request leaves while it is decided, and what of it may be written
down: numbers, words of ours, names from the configuration, and names a client asked for if they
look like names. Any other text becomes a keyed hash or is left out and counted; content and
keys never get in. Does not live here: time and files (store), the hash chain (chain).
"""

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from tidegate.policy import Principal

Kind = Literal["intent", "end", "lost"]
Surface = Literal["chat", "mcp"]

MAX_STEPS = 4096
"""More steps than any honest request takes; a batch of calls has one for each call."""

# Values of these come from the configuration, which holds them to a pattern of its own.
_CONFIGURED = frozenset({"detector", "limit", "provider", "route", "scope", "server", "store"})
# Values of these are the client's: a key pasted into the wrong field must not end up here.
_ASKED = frozenset({"method", "model", "prompt", "resource", "tool"})
# Values of these are words of ours.
_WORDS = frozenset({"code", "error", "kind", "mode", "reason", "unit"})

_CONFIGURED_NAME = re.compile(r"[!-~]{1,128}")
_ASKED_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,127}")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
_CLIENT_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
# A key by its prefix, a number with separators, a long run of mixed letters and digits.
_SECRET_SHAPE = re.compile(
    r"^(?:(?i:sk)[-_]|gh[oprsu]_|github_pat_|glpat-|xox[a-z]-|A[KS]IA[0-9A-Z]|AIza|eyJ)"
    r"|(?:[0-9][_.:/-]?){11}"
    r"|[0-9]{3}-[0-9]{2}-[0-9]{4}"
    r"|(?=[A-Za-z]*[0-9][A-Za-z]*[0-9])[A-Za-z0-9]{16}"
    r"|[A-Za-z0-9]{41}"
)

_ENCODE = msgspec.json.Encoder(order="deterministic").encode
# Words of ours and of the configuration are few and come again and again.
_MOST_REMEMBERED, _MOST_NAME_CHARS = 4096, 128
_ODD_NAME, _ODD_WORD = "odd-name", "odd-word"

Written = int | float | str
"""A value as it stands in the file."""


@dataclass(frozen=True, slots=True)
class Plain:
    """An operand that stands in the configuration letter for letter, so it may be shown."""

    text: str


class Step(NamedTuple):
    """One decision on the way: `stage` came to `verdict` by `rule`, judged by these values."""

    stage: str
    verdict: str
    rule: str
    values: Mapping[str, object]
    operands: Mapping[str, object]
    found: Mapping[str, int]


class Snapshot(Struct, frozen=True):
    """A trail at one moment, safe to hand to another thread."""

    request_id: str
    surface: Surface
    client_request_id: str
    revision: str
    principal: Principal
    steps: tuple[Step, ...]
    outcome: str
    status: int
    duration_ms: float | None = None

    def body(self, hash_key: bytes) -> dict[str, object]:
        """What is written down; strings of operands as a hash under `hash_key`."""
        return {**self.frame(), "steps": [written_step(step, hash_key) for step in self.steps]}

    def frame(self) -> dict[str, object]:
        """What is written down of all but the steps."""
        who = self.principal
        body: dict[str, object] = {
            "surface": self.surface,
            "revision": _configured(self.revision),
            "principal": _configured(who.name),
            "tenant": _configured(who.tenant),
            "roles": [_configured(role) for role in who.roles],
            "key_id": _configured(who.key_id),
        }
        if who.issuer:
            body["issuer"] = _configured(who.issuer)
        if self.client_request_id:
            body["client_request_id"] = self.client_request_id
        if self.outcome:
            body["outcome"] = _word(self.outcome)
            body["status"] = self.status
        if self.duration_ms is not None:
            body["duration_ms"] = round(self.duration_ms, 3)
        return body


class Trail:
    """The steps of one request in order; made when the caller is known, finished once.

    `began_s`, `tracked`, `intended`, `committed` and `ended` belong to the recorder: when the
    request was first seen (monotonic), whether its beginning, an intent and its end were handed
    in, and whether the intent is on disk.
    """

    __slots__ = (
        "_outcome",
        "_status",
        "_steps",
        "began_s",
        "client_request_id",
        "committed",
        "ended",
        "intended",
        "overflow",
        "principal",
        "request_id",
        "revision",
        "surface",
        "tracked",
    )

    def __init__(
        self,
        surface: Surface,
        request_id: str,
        principal: Principal,
        revision: str,
        client_request_id: str = "",
    ) -> None:
        self.surface: Surface = surface
        self.request_id = request_id
        self.principal = principal
        self.revision = revision
        self.client_request_id = client_request_id
        self.began_s: float | None = None
        self.tracked = False
        self.intended = False
        self.committed = False
        self.ended = False
        self.overflow = False
        self._steps: list[Step] = []
        self._outcome = ""
        self._status = 0

    @classmethod
    def begin(
        cls,
        surface: Surface,
        request_id: str,
        principal: Principal,
        revision: str,
        *,
        headers: Collection[tuple[bytes, bytes]] = (),
    ) -> "Trail":
        """A trail whose first step is the identity; keeps a well-formed `x-request-id`."""
        theirs, credentials, client_request_id = [], [], ""
        for name, value in headers:
            lowered = name.lower()
            if lowered == b"x-request-id":
                theirs.append(value)
            elif lowered == b"authorization":
                credentials.append(value)
        # A key sent as a request id must not be written down as one.
        if len(theirs) == 1 and not any(theirs[0] in value for value in credentials):
            text = theirs[0].decode("latin-1")
            client_request_id = text if _CLIENT_REQUEST_ID.fullmatch(text) else ""
        trail = cls(surface, request_id, principal, revision, client_request_id)
        trail.step("identity", "ok")
        return trail

    def step(
        self,
        stage: str,
        verdict: str,
        rule: str = "",
        *,
        operands: Mapping[str, object] | None = None,
        **values: object,
    ) -> None:
        """Note one decision. Cheap: what may be written down is settled when it is written.

        Numbers and booleans pass under any name. Text passes as a configured name (provider,
        route, server, limit, detector, store, scope), as a name the client asked for (tool,
        model, method, prompt, resource; anything that could be a secret becomes a hash), or as a
        word (code, error, kind, mode, reason, unit); under other names it is left out and
        counted. `operands` are the arguments a predicate looked at, by name: their text is
        hashed, unless it is Plain. None is left out.
        """
        self._add(Step(stage, verdict, rule, values, dict(operands) if operands else {}, {}))

    def counts(self, stage: str, verdict: str, found: Mapping[str, int], **values: object) -> None:
        """Note how often each detector matched; a step even when nothing was found."""
        self._add(Step(stage, verdict, "", values, {}, dict(found)))

    def finish(self, outcome: str, status: int) -> None:
        """How the request ended: one word, and the status the client saw (0: none left)."""
        self._outcome = outcome
        self._status = status

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps so far, in order."""
        return tuple(self._steps)

    def snapshot(self, *, now_s: float | None = None) -> Snapshot:
        """This moment's state; `now_s` is monotonic and gives the duration."""
        began_s = self.began_s
        duration_ms = None if now_s is None or began_s is None else (now_s - began_s) * 1000
        return Snapshot(
            request_id=self.request_id,
            surface=self.surface,
            client_request_id=self.client_request_id,
            revision=self.revision,
            principal=self.principal,
            steps=tuple(self._steps),
            outcome=self._outcome,
            status=self._status,
            duration_ms=duration_ms,
        )

    def _add(self, step: Step) -> None:
        if len(self._steps) < MAX_STEPS:
            self._steps.append(step)
        else:
            self.overflow = True  # an intent that does not hold every call is refused


def canonical(value: object) -> str:
    """The one JSON text for `value`: sorted keys, no spaces, no escapes beyond the needed."""
    return _ENCODE(value).decode()


def written_step(step: Step, hash_key: bytes) -> dict[str, object]:
    """What is written down of a step; see Trail.step."""
    written: dict[str, object] = {"stage": _word(step.stage), "verdict": _word(step.verdict)}
    if step.rule:
        written["rule"] = _configured(step.rule)
    values, dropped = _values(step.values, hash_key)
    if values:
        written["values"] = values
    if step.operands:
        written["operands"] = {
            _configured(name): _operand(value, hash_key) for name, value in step.operands.items()
        }
    if step.found:
        written["found"] = {_configured(label): int(n) for label, n in step.found.items()}
    if dropped:
        written["dropped"] = dropped
    return written


def _values(values: Mapping[str, object], hash_key: bytes) -> tuple[dict[str, Written], int]:
    written: dict[str, Written] = {}
    dropped = 0
    for name, value in values.items():
        match value:
            case None:
                continue
            case bool() | int() | float():
                written[name] = _number(value, hash_key)
            case str() if name in _CONFIGURED:
                written[name] = _configured(value)
            case str() if name in _WORDS:
                written[name] = _word(value)
            case str() if name in _ASKED:
                written[name] = asked_name(value) or _hash(value, hash_key)
            case _:
                dropped += 1
    return written, dropped


def asked_name(text: str) -> str | None:
    """`text` if it is safe to show: it looks like a name and not like a key or a number."""
    if _ASKED_NAME.fullmatch(text) and not _SECRET_SHAPE.search(text):
        return str(text)
    return None


def _operand(value: object, hash_key: bytes) -> Written | None:
    match value:
        case None:
            return None
        case Plain(text):
            return text if text.isprintable() else _hash(text, hash_key)
        case bool() | int() | float():
            return _number(value, hash_key)
        case str():
            return _hash(value, hash_key)
        case _:
            return f"a {type(value).__name__}"


def _number(value: float, hash_key: bytes) -> Written:
    if isinstance(value, float):
        return round(value, 6) if isfinite(value) else "not finite"
    # Thousands of digits are content, not a number.
    return value if -(2**63) <= value < 2**63 else _hash(str(value), hash_key)


def _configured(text: str) -> str:
    return _name(text) if len(text) <= _MOST_NAME_CHARS else _ODD_NAME


@lru_cache(_MOST_REMEMBERED)
def _name(text: str) -> str:
    return str(text) if _CONFIGURED_NAME.fullmatch(text) else _ODD_NAME


def _word(text: str) -> str:
    return _known_word(text) if len(text) <= _MOST_NAME_CHARS else _ODD_WORD


@lru_cache(_MOST_REMEMBERED)
def _known_word(text: str) -> str:
    return str(text) if _WORD.fullmatch(text) else _ODD_WORD


def _hash(text: str, hash_key: bytes) -> str:
    digest = hmac.new(hash_key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return "hash:" + digest.hexdigest()[:16]


__all__ = [
    "MAX_STEPS",
    "Kind",
    "Plain",
    "Snapshot",
    "Step",
    "Surface",
    "Trail",
    "asked_name",
    "canonical",
    "written_step",
]
