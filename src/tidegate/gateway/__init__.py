"""How do the parts become one gateway?"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.config import Config
    from tidegate.gateway.app import Gateway


def create_app(config: "Config") -> "Gateway":
    """The gateway for `config`: an ASGI application to be mounted in any server.

    A server that runs the lifespan protocol opens and closes it. Importing this package is
    cheap; the first call imports the whole graph.
    """
    from tidegate.gateway.app import Gateway  # noqa: PLC0415 - logs and bodies are wanted alone too

    return Gateway(config)


__all__ = ["create_app"]
