"""What did we decide, and why?

The decision record: entries that hold no content (entries), chained by hashes (chain), in one
SQLite file a gateway (store), and read back for a human (reading, explain).
"""

from tidegate.records.entries import Plain, Trail
from tidegate.records.explain import as_json, as_text
from tidegate.records.reading import Record, RecordsUnreadable, broken_chains, find
from tidegate.records.store import Recorder

__all__ = [
    "Plain",
    "Record",
    "Recorder",
    "RecordsUnreadable",
    "Trail",
    "as_json",
    "as_text",
    "broken_chains",
    "find",
]
