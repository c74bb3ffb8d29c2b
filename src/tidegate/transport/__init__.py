"""How is one attempt at an upstream made under its deadlines?

The words and the awaitable side. The client itself (aiohttp_client) is imported by whoever
builds the object graph, because it is the only one who needs a socket.
"""

from tidegate.transport.inbox import AttemptFailed, Inbox, Inboxes
from tidegate.transport.upstream import (
    Attempt,
    Failure,
    ResponseSink,
    Transport,
    UpstreamRequest,
)

__all__ = [
    "Attempt",
    "AttemptFailed",
    "Failure",
    "Inbox",
    "Inboxes",
    "ResponseSink",
    "Transport",
    "UpstreamRequest",
]
