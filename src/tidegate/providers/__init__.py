"""How is each provider addressed, and what do its answers say?"""

from tidegate.providers.base import (
    Glance,
    MalformedEvent,
    Provider,
    ProviderRequest,
    Usage,
)

__all__ = ["Glance", "MalformedEvent", "Provider", "ProviderRequest", "Usage"]
