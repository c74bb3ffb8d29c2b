"""Which path function serves this request, and what if anything in it fails?

The request boundary: Host and Origin, the cap on requests in flight, the table of paths, and the
one place where an unexpected exception becomes an answer. Lives here: that. Does not live here:
what the paths do (chat, tool_traffic), the graph of objects (app).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from tidegate.errors import (
    InternalError,
    MethodNotAllowed,
    NotFound,
    Overloaded,
    TidegateError,
    envelope,
)
from tidegate.gateway.exposure import Exposure
from tidegate.gateway.logs import RefusalLog
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.respond import ErrorBody, Receive, Responder, Scope, Send

logger = logging.getLogger(__name__)

# Why a token was refused, and whose it was said to be: words of ours and of the configuration.
_TOLD = ("reason", "issuer")

Serve = Callable[[Scope, Receive, Responder], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Path:
    """One path: its function, the methods it takes, and the dialect of its errors."""

    serve: Serve
    methods: frozenset[str] = frozenset({"POST"})
    error_body: ErrorBody = envelope


class Front:
    """The ASGI application of the first listener, for `http` scopes.

    `paths` is asked anew for each request: a reload may have changed them. `mint` names it.
    """

    def __init__(
        self,
        *,
        paths: Callable[[], Mapping[bytes, Path]],
        exposure: Exposure,
        max_in_flight: int,
        metrics: Metrics,
        refusals: RefusalLog,
        mint: Callable[[], str],
    ) -> None:
        self._paths = paths
        self._exposure = exposure
        self._max_in_flight = max_in_flight
        self._metrics = metrics
        self._refusals = refusals
        self._mint = mint
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        responder = Responder(send, self._mint())
        self.in_flight += 1
        try:
            await self._serve(scope, receive, responder)
        except TidegateError as error:
            await self._refuse(responder, error)
        except Exception as bug:
            logger.exception("request_failed", extra={"request_id": responder.request_id})
            await self._refuse(responder, InternalError(type(bug).__name__))
        finally:
            self.in_flight -= 1

    async def _serve(self, scope: Scope, receive: Receive, responder: Responder) -> None:
        # The path as it stood in the request line: a decoded or normalized one could name
        # something else than what the rules were written for.
        path = self._paths().get(scope["raw_path"])
        if path is not None:
            responder.error_body = path.error_body
        admitted = self._exposure.judge(scope["method"], scope["headers"])
        responder.extra.extend(admitted.headers)
        if path is None:
            raise NotFound
        if admitted.preflight:
            await responder.empty(204)
            return
        if scope["method"] not in path.methods:
            raise MethodNotAllowed(allowed=path.methods)
        if self.in_flight > self._max_in_flight:
            raise Overloaded("requests in flight")
        await path.serve(scope, receive, responder)

    async def _refuse(self, responder: Responder, error: TidegateError) -> None:
        if not responder.known:
            self._metrics.refused(code=error.code)
            words = {name: word for name in _TOLD if (word := getattr(error, name, ""))}
            self._refusals.refused(
                error.code, status=error.status, request_id=responder.request_id, **words
            )
        if not responder.started:
            await responder.error(error)
