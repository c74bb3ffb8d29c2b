"""How does anyone write an MCP tool that takes exactly what it publishes?

Public: `strict_tool` on an async function, `StrictInput` for its arguments, `ExactNumber` for one
that is judged as it was written, `StrictOutput` for what it promises to answer, `ToolResult` for
an answer with `_meta`, `ToolContext` for progress, `ToolFailure` for a refusal, `ToolServer` to
serve them, `http_app` to serve any low-level server of the SDK over HTTP, `seize_stdio` for
programs that import much before they serve. Names load on first use, so that `seize_stdio` can run
before pydantic and the SDK exist.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.tools.context import ToolContext
    from tidegate.tools.http import http_app
    from tidegate.tools.server import ToolServer
    from tidegate.tools.stdio import seize_stdio
    from tidegate.tools.strict import (
        ExactNumber,
        StrictInput,
        StrictOutput,
        StrictTool,
        ToolFailure,
        ToolResult,
        strict_tool,
    )

__all__ = [
    "ExactNumber",
    "StrictInput",
    "StrictOutput",
    "StrictTool",
    "ToolContext",
    "ToolFailure",
    "ToolResult",
    "ToolServer",
    "http_app",
    "seize_stdio",
    "strict_tool",
]

_HOMES = {
    "ToolServer": "server",
    "ToolContext": "context",
    "http_app": "http",
    "seize_stdio": "stdio",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(name)
    module = import_module(f"tidegate.tools.{_HOMES.get(name, 'strict')}")
    value: object = getattr(module, name)
    return value
