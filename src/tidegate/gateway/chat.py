"""What happens to one chat completion, in order?

    1 identity   headers -> Principal                  401
    2 body       bounded, strict, known fields         400 413 415
    3 routing    the route of this model and principal 400 403
    4 limits     RESERVE the estimate                  429 413 503
    5 redaction  the request's text                    (or block)
    6 attempts   target after target, then the answer  502 400
    7 limits     SETTLE what was used | RELEASE
    8 record     one entry, whatever ended it

Lives here: this order, and which resources a request holds. Does not live here: any of the
decisions. An answer that has begun is settled by what was really used, also when the client
disappears; one that has not is released. Never both, never neither (charge).
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tidegate.errors import InvalidRequest
from tidegate.gateway.accounting import Accounting
from tidegate.gateway.attempts import Attempts
from tidegate.gateway.beside import beside_the_loop
from tidegate.gateway.body import BodyReader
from tidegate.gateway.charge import Charging
from tidegate.gateway.classifier import Checker, Classifiers
from tidegate.gateway.identify import TokenGate, identify
from tidegate.gateway.limit_headers import limit_headers
from tidegate.gateway.masking import Masking
from tidegate.gateway.prompt import masked_prompt
from tidegate.gateway.quote import Quote, needs
from tidegate.gateway.relay import ChatCall
from tidegate.gateway.respond import Header, Receive, Responder, Scope
from tidegate.identity.keys import KeyTable
from tidegate.limits.estimate import estimate_request
from tidegate.limits.learned import LearnedFactors
from tidegate.limits.ledger import LimitTable, Standing
from tidegate.limits.prices import PriceTable
from tidegate.policy import Principal
from tidegate.providers.base import Provider
from tidegate.providers.openai import usage_wish
from tidegate.records.entries import Trail
from tidegate.routing.failover import Failover
from tidegate.routing.order import ordered, without_fallback
from tidegate.routing.plan import Route, RouteTable
from tidegate.routing.targets import Targets

_LEASE_GRACE_S = 30.0
_FALLBACK = b"x-tidegate-fallback"


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """What one configuration revision says about chat requests; swapped whole at a reload."""

    revision: str
    keys: KeyTable
    routes: RouteTable
    limits: LimitTable
    providers: Mapping[str, Provider]
    masking: Mapping[str, Masking]
    """By route name."""
    prices: PriceTable = field(default_factory=lambda: PriceTable({}))
    tokens: TokenGate | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The fields and the header that policy acts on; everything else passes untouched.

    `fallback`: other targets may be asked when the first one does not serve.
    """

    document: dict[str, object]
    model: str | None
    stream: bool
    fallback: bool = True

    @classmethod
    def read(cls, document: object, headers: Iterable[Header]) -> "ChatRequest":
        """Check what we act on; raises InvalidRequest naming it."""
        if not isinstance(document, dict):
            raise InvalidRequest(public="The body must be a JSON object.")
        model, stream = document.get("model"), document.get("stream")
        if model is not None and (not isinstance(model, str) or not model):
            raise InvalidRequest(public="'model' must be a non-empty string.", param="model")
        if stream is not None and not isinstance(stream, bool):
            raise InvalidRequest(public="'stream' must be true or false.", param="stream")
        if not isinstance(document.get("messages"), list) or not document["messages"]:
            raise InvalidRequest(public="'messages' must be a non-empty list.", param="messages")
        return cls(document, model, bool(stream), _wants_fallback(headers))

    @property
    def choices(self) -> int:
        """How many answers it asks for; 0 for what a provider may read in some way of its own."""
        count = self.document.get("n")
        if count is None:
            return 1
        return count if isinstance(count, int) and not isinstance(count, bool) else 0


def _wants_fallback(headers: Iterable[Header]) -> bool:
    given = {value.strip().lower() for name, value in headers if name == _FALLBACK}
    if given <= {b"on"}:
        return True
    if given == {b"off"}:
        return False
    raise InvalidRequest(public="The header 'x-tidegate-fallback' must be 'on' or 'off'.")


class Chat:
    """Serves `POST /v1/chat/completions`. `policy` gives the revision that is in force."""

    def __init__(
        self,
        *,
        policy: Callable[[], ChatPolicy],
        bodies: BodyReader,
        charging: Charging,
        attempts: Attempts,
        targets: Targets,
        accounting: Accounting,
        classifiers: Classifiers,
    ) -> None:
        self._policy = policy
        self._bodies = bodies
        self._charging = charging
        self._attempts = attempts
        self._targets = targets
        self._accounting = accounting
        self._classifiers = classifiers
        self._clock = classifiers.clock
        self._learned = LearnedFactors()

    async def serve(self, scope: Scope, receive: Receive, responder: Responder) -> None:
        """Answer one request; raises the TidegateError that the client gets otherwise."""
        policy = self._policy()
        started_s = self._clock.monotonic_s()
        principal = await identify(policy.keys, policy.tokens, scope)
        trail = Trail.begin(
            "chat", responder.request_id, principal, policy.revision, headers=scope["headers"]
        )
        async with (
            self._accounting.accounted(trail, responder) as account,
            self._bodies.json(scope, receive) as body,
        ):
            request = ChatRequest.read(body.value, scope["headers"])
            route = policy.routes.match(request.model, principal)
            if route is None:
                raise policy.routes.refusal(request.model, principal)
            wish = None if request.fallback else False
            trail.step("route", "match", rule=route.name, fallback=wish)
            account.route = route.name
            quote = await self._quote(policy, principal, route, request, len(body.raw))
            deadlines = route.deadlines
            total_s = deadlines.stream_total_s if request.stream else deadlines.total_s
            async with self._charging.reserved(
                responder.request_id,
                quote.charges(policy.limits, principal, route.name),
                lease_s=total_s + _LEASE_GRACE_S,
                tell=partial(_show_limits, responder),
            ) as charge:
                _note_reserved(trail, quote)
                masking = policy.masking[route.name].begin(principal.tenant, secrets.token_bytes)
                checker = self._checker(masking.masking, trail, started_s + total_s)
                call = ChatCall(
                    body=await masked_prompt(
                        masking, request.document, body.raw, checker=checker, trail=trail
                    ),
                    model=request.model,
                    stream=request.stream,
                    quote=quote,
                    providers=policy.providers,
                    masking=masking,
                    checker=checker,
                    deadlines=deadlines,
                    started_s=started_s,
                    failover=self._walk(route, request, quote, started_s, total_s),
                    choices=request.choices,
                    fallback=request.fallback,
                    slow_tokens_per_s=route.breaker.slow_tokens_per_s,
                    charge=charge,
                    trail=trail,
                    responder=responder,
                    wish=usage_wish(request.document),
                )
                try:
                    account.outcome = await self._attempts.answer(call)
                finally:
                    masking.abandon()
                    account.used(charge)
                    self._learn(principal, call)

    async def _quote(
        self,
        policy: ChatPolicy,
        principal: Principal,
        route: Route,
        request: ChatRequest,
        size_bytes: int,
    ) -> Quote:
        estimate = await beside_the_loop(
            size_bytes,
            estimate_request,
            request.document,
            default_output_tokens=route.default_output_tokens,
        )
        return Quote.of(
            needs(route, request.document, estimate),
            policy.providers,
            policy.prices,
            model=request.model,
            factor=self._learned.factor(principal.tenant, request.model or ""),
        )

    def _walk(
        self, route: Route, request: ChatRequest, quote: Quote, started_s: float, total_s: float
    ) -> Failover:
        order = ordered(
            route,
            self._targets,
            self._attempts.random.random,
            self._clock.monotonic_s(),
            prompt_tokens=quote.need.input_tokens,
        )
        if not request.fallback:
            order = without_fallback(route, order)
        return Failover(
            route,
            self._targets,
            started_s=started_s,
            total_s=total_s,
            stream=request.stream,
            order=order,
            single=not request.fallback,
        )

    def _checker(self, masking: Masking, trail: Trail, due_s: float) -> Checker | None:
        settings = masking.classifier
        return self._classifiers.checker(settings, trail, due_s) if settings else None

    def _learn(self, principal: Principal, call: ChatCall) -> None:
        """Compare the estimate of the prompt with the provider's figure, if there is one."""
        if call.bill is not None and call.bill.prompt is not None:
            self._learned.learn(
                principal.tenant,
                call.model or "",
                estimated=call.quote.plain.input_tokens,
                actual=call.bill.prompt,
            )


def _show_limits(
    responder: Responder,
    standings: Sequence[Standing],
    degraded: bool,  # noqa: FBT001 - of Tell
) -> None:
    responder.extra.extend(limit_headers(standings, degraded=degraded))


def _note_reserved(trail: Trail, quote: Quote) -> None:
    trail.step(
        "limits",
        "reserved",
        tokens=quote.need.total_tokens,
        money_micros=quote.money_micros or None,
        factor=None if quote.factor == 1.0 else round(quote.factor, 3),
    )
