"""The suites of other people that judge our MCP server; see README.md."""
