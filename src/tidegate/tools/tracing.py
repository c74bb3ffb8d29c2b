"""Does anybody collect traces of this server's calls?

The SDK puts a span around every message, also where no OpenTelemetry is set up and the span goes
nowhere; that is a tenth of a short call. Lives here: when its middleware runs. Does not live here:
what it records.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, get_tracer_provider

Context = ServerRequestContext[Any, Any]
CallNext = Callable[[Context], Awaitable[Any]]
Middleware = Callable[[Context, CallNext], Awaitable[Any]]

_SPANS = "OpenTelemetryMiddleware"
"""The SDK does not export the class; one of another name stays as it is."""


def trace_when_collected(server: Server[Any]) -> None:
    """Lets the SDK's tracing of `server` run only while a tracer provider is installed.

    Providers may come and go between calls; asking costs about a microsecond.
    """
    server.middleware[:] = [
        _when_collected(one) if type(one).__name__ == _SPANS else one for one in server.middleware
    ]


def _when_collected(spans: Middleware) -> Any:
    async def traced(context: Context, call_next: CallNext) -> Any:
        # What stands for "nobody has set one up".
        if isinstance(get_tracer_provider(), ProxyTracerProvider | NoOpTracerProvider):
            return await call_next(context)
        return await spans(context, call_next)

    return traced


__all__ = ["trace_when_collected"]
