"""How is an MCP tool written that takes exactly what it publishes?

Serve it: tidegate mcp serve examples.strict_tool:server
"""

from typing import Annotated

from pydantic import Field

from tidegate.tools import StrictInput, ToolFailure, ToolServer, strict_tool

STOCK = {"tea": 12, "coffee": 0}


class StockQuery(StrictInput):
    """Which product."""

    product: Annotated[str, Field(pattern=r"^[a-z]{1,20}$", description="lower case letters")]


@strict_tool
async def stock_of(query: StockQuery) -> str:
    """How many of a product are in stock."""
    if query.product not in STOCK:
        raise ToolFailure("we do not sell that")
    return str(STOCK[query.product])


server = ToolServer([stock_of], name="stock")
