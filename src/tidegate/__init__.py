"""tidegate: one policy layer in front of language models and MCP tools."""

__version__ = "0.1.0"
