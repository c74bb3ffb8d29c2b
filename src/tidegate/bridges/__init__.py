"""How do MCP clients and servers that cannot talk to each other do so through us?

Lives here: `tidegate mcp wrap` (a server of somebody else with a clean wire) and `tidegate mcp
connect` (a client that knows stdio alone, and a server on HTTP). What decides is pure (sorting,
junk, endpoint, turns); the rest moves bytes.
"""
