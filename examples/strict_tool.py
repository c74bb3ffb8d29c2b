"""How is an MCP tool written that takes exactly what it publishes?

Serve it: tidegate mcp serve examples.strict_tool:server
Or over HTTP: tidegate mcp serve examples.strict_tool:server --http 127.0.0.1:9000
"""

from typing import Annotated

from pydantic import Field

from tidegate.tools import StrictInput, StrictOutput, ToolFailure, ToolServer, strict_tool

STOCK = {"tea": 12, "coffee": 0}


class StockQuery(StrictInput):
    """Which product."""

    product: Annotated[str, Field(pattern=r"^[a-z]{1,20}$", description="lower case letters")]


class Stock(StrictOutput):
    """What is there."""

    product: str
    count: Annotated[int, Field(ge=0)]


@strict_tool(annotations={"readOnly": True})
async def stock_of(query: StockQuery) -> Stock:
    """How many of a product are in stock."""
    if query.product not in STOCK:
        raise ToolFailure("we do not sell that")
    return Stock(product=query.product, count=STOCK[query.product])


server = ToolServer([stock_of], name="stock")
