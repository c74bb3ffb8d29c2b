"""What can be tried of the gateway without any account?

Lives here: a model provider that leaks personal data, two providers that fail on command, the
store behind the support tools, an MCP backend, and the terminal show over all of them. Does not
live here: anything the gateway needs when it serves real upstreams.
"""
