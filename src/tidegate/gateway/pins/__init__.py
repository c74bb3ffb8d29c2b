"""Is each tool that a server offers still the one that was approved?

When lists are compared with the store (checked), what is known of a server as it runs (known), and
what operators are told (told). What a difference means is decided in mcp.pins.
"""
