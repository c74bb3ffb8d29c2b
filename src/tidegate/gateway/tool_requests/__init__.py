"""Which part of an MCP request is decided, forwarded and answered where?

tool_traffic calls these in order: what is known of a request (turn), what was decided of each of
its messages (call, among, pinned), how one is forwarded (relay, federation), what its client gets
(answer), what a client listens to (streams, hearing, listening), and what outlives a request
(sessions, suspended).
"""
