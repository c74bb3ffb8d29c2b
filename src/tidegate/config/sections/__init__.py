"""Which keys has each part of the file?

Lives here: one module for each top-level part, pydantic models shaped exactly like the file,
every key with its default and a line about it (the editor schema shows them). Does not live
here: rules between keys (checks), reading and placing (document, load).
"""
