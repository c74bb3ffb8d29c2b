"""How does an authorized MCP message reach its server, and what comes back?

A carrier for each server (carrier, carriers): over HTTP (upstream), to a process of ours over
stdio (children, child), and through a bridge where the server speaks another revision than its
client (bridge). Knows nothing of rules, of who asks, or of what a client may see of an answer.
"""
