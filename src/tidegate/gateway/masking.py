"""Which redaction applies to this direction of this request?

Lives here: the modes off, detect and enforce, the redaction of one LLM request from its prompt to
the end of its answer, with its vault and what its classifier is asked. Does not live here: what is
masked and how (redaction), the stages of an answer (filters), asking a classifier (classifier).

A prompt's placeholders are put back in whatever mode the answer is: who keeps values from a
provider wants to see them again. An MCP call has no vault; one LLM request is all that a vault
lives for. A classifier is asked in the directions that are enforced.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal

from tidegate import strictjson
from tidegate.errors import InvalidRequest
from tidegate.gateway.classifier import ClassifierSettings
from tidegate.gateway.filters import Body, Masked, Observed, PassThrough, WholeAnswer, guarded
from tidegate.redaction import (
    ChatStreamRedactor,
    Counts,
    RedactionPolicy,
    Treatment,
    Vault,
    redact_chat_completion,
    redact_chat_request,
    redact_tree,
)
from tidegate.redaction.holes import Holes
from tidegate.redaction.tenants import TenantPolicies

Mode = Literal["off", "detect", "enforce"]
Draw = Callable[[int], bytes]
"""So many random bytes, never the same twice."""

_ARGUMENTS: Mapping[Mode, bool | Literal["detect"]] = MappingProxyType(
    {"off": False, "detect": "detect", "enforce": True}
)
_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Masking:
    """The redaction of one route or one MCP server.

    `tool_arguments` and `tool_results` may be weaker or stronger than the rest of an answer.
    """

    policy: RedactionPolicy
    request: Mode = "detect"
    response: Mode = "enforce"
    tool_arguments: Mode = "detect"
    tool_results: Mode = "enforce"
    logprobs: Literal["drop", "refuse"] = "drop"
    tail_comment: bool = False
    vault: bool = False
    classifier: ClassifierSettings | None = None
    policies: TenantPolicies | None = None
    """If tenants have policies of their own; `policy` is everybody else's."""

    def begin(self, tenant: str, draw: Draw) -> "CallMasking":
        """For one LLM request of `tenant`."""
        return CallMasking(self, self.policy_for(tenant), draw)

    def mask_result(self, value: object, tenant: str) -> tuple[object, Counts]:
        """An MCP message for a client of `tenant`: the value that may leave, and what was found."""
        mode = self.tool_results
        if mode == "off":
            return value, Counts()
        masked, found = guarded(_masked, value, self.policy_for(tenant), mode)
        return (masked if mode == "enforce" else value), found

    def mask_arguments(
        self, texts: Mapping[str, object], tenant: str
    ) -> tuple[Mapping[str, object], Counts]:
        """What a client of `tenant` says to an MCP server: what may be sent, and what was found.

        `texts` are JSON values by name, each a document of its own. The same object if nothing
        in it changes.
        """
        mode = self.tool_arguments
        if mode == "off":
            return texts, Counts()
        told, found = guarded(_told, texts, self.policy_for(tenant), mode)
        return (told if mode == "enforce" else texts), found

    def policy_for(self, tenant: str) -> RedactionPolicy:
        """The policy of `tenant`."""
        return self.policy if self.policies is None else self.policies.for_tenant(tenant)


class CallMasking:
    """The redaction of one LLM request; made by `Masking.begin`, forgotten with the request."""

    def __init__(self, masking: Masking, policy: RedactionPolicy, draw: Draw) -> None:
        self.masking = masking
        self._policy = policy
        self._draw = draw
        self.vault = Vault(draw(_SALT_BYTES)) if masking.vault else None
        self._treatment: Treatment | None = None
        self._is_abandoned = False

    def abandon(self) -> None:
        """Nobody waits any more: work that still runs in a thread ends soon."""
        self._is_abandoned = True
        if self._treatment is not None:
            self._treatment.abandon()

    def admit(self, document: Body) -> None:
        """Refuse what an enforced answer could not give. Raises InvalidRequest."""
        masking = self.masking
        if masking.response != "enforce" or masking.logprobs != "refuse":
            return
        for field in ("logprobs", "top_logprobs"):
            asked = document.get(field)
            if asked is not None and asked is not False:
                raise InvalidRequest(
                    public=f"'{field}' is not available: token probabilities repeat the text.",
                    param=field,
                )

    def prompt(self, document: Body, raw: bytes) -> "Prompt":
        """The request that may be sent upstream; `raw` is what `document` was read from."""
        mode = self.masking.request
        if mode == "off":
            return Prompt(raw, Counts())
        holes = self._holes(mode)
        treatment = Treatment(
            guarded(_applied, self._policy, mode),
            replace=self.vault.placeholder if self.vault is not None else None,
            holes=holes,
        )
        self._begin(treatment)
        masked, found = guarded(lambda: redact_chat_request(document, treatment))
        if mode != "enforce" or masked is document:
            return Prompt(raw, found)
        body = strictjson.dumps(masked)
        if holes is None:
            return Prompt(body, found)
        return Prompt(body, found, holes, raw, strictjson.dumps(document))

    @property
    def vault_figures(self) -> dict[str, int]:
        """For the record: values that can be put back, and those for which there was no room."""
        if self.vault is None:
            return {}
        figures = {"vault": len(self.vault)}
        return {**figures, "vault_refused": self.vault.refused} if self.vault.refused else figures

    def stream_filter(self) -> PassThrough | Masked:
        """The stage for one answer's stream."""
        masking, holes = self.masking, self._holes(self.masking.response)
        treatment = self._answer_treatment(holes)
        if treatment is None:
            return PassThrough()
        redactor = guarded(lambda: ChatStreamRedactor(treatment, logprobs=self._logprobs))
        if masking.response == "enforce" or self.vault:
            return Masked(redactor, holes)
        return Observed(redactor)

    def answer_filter(self) -> WholeAnswer:
        """The stage for one whole answer."""
        holes = self._holes(self.masking.response)
        treatment = self._answer_treatment(holes)
        if treatment is None:
            return WholeAnswer(None)
        return WholeAnswer(partial(self._mask_answer, treatment), holes)

    def _mask_answer(self, treatment: Treatment, document: Body) -> tuple[Body, Counts]:
        masked, found = redact_chat_completion(document, treatment, logprobs=self._logprobs)
        changes = self.masking.response == "enforce" or self.vault
        return (masked if changes else document), found

    def _answer_treatment(self, holes: Holes | None) -> Treatment | None:
        """How the texts of an answer are treated; None if they pass unread."""
        mode = self.masking.response
        if mode == "off":
            return Treatment.restoring(self.vault) if self.vault else None
        treatment = Treatment(
            guarded(_applied, self._policy, mode),
            tool_arguments=_ARGUMENTS[self.masking.tool_arguments],
            vault=self.vault,
            holes=holes,
        )
        self._begin(treatment)
        return treatment

    def _begin(self, treatment: Treatment) -> None:
        self._treatment = treatment
        # A thread may begin after its caller has left.
        if self._is_abandoned:
            treatment.abandon()

    @property
    def _logprobs(self) -> Literal["drop", "refuse"]:
        return self.masking.logprobs if self.masking.response == "enforce" else "drop"

    def _holes(self, mode: Mode) -> Holes | None:
        if self.masking.classifier is None or mode != "enforce":
            return None
        return Holes(self._draw(_SALT_BYTES).hex())


class Prompt:
    """A request as it may be sent, once the holes in it are filled."""

    def __init__(
        self,
        body: bytes,
        found: Counts,
        holes: Holes | None = None,
        raw: bytes = b"",
        plain: bytes = b"",
    ) -> None:
        self._body = body
        self.found = found
        self.holes = holes
        self._raw = raw
        self._plain = plain

    def body(self) -> bytes:
        """The bytes to send: the client's own if nothing was changed."""
        if self.holes is None:
            return self._body
        filled = guarded(self.holes.fill, self._body)
        return self._raw if filled == self._plain else filled


def _masked(value: object, policy: RedactionPolicy, mode: Mode) -> tuple[object, Counts]:
    return redact_tree(value, _applied(policy, mode))


def _told(
    texts: Mapping[str, object], policy: RedactionPolicy, mode: Mode
) -> tuple[Mapping[str, object], Counts]:
    applied, told, counts = _applied(policy, mode), texts, Counts()
    for name, value in texts.items():
        masked, found = redact_tree(value, applied)
        counts.add(found)
        if masked is not value:
            told = {**told, name: masked}
    return told, counts


def _applied(policy: RedactionPolicy, mode: Mode) -> RedactionPolicy:
    return policy if mode == "enforce" else policy.observing()


__all__ = ["CallMasking", "Draw", "Masking", "Mode", "Prompt"]
