"""Which part of an MCP request is decided, forwarded and answered where?

tool_traffic calls these in order: what is known of a request (turn), what was decided of each of
its messages (call, among, pages; offered and pinned, which ask for lists: asked_lists), how one is
forwarded (relay, federation, endings, failures, unheard), what its client may see and in which form
(answer, client_side), what a client listens to (streams, hearing, hearing_among, listening,
subscribed), and what outlives a request (sessions, shared_cursors, suspended, shares).
"""
