"""Which principal does this credential name?"""

from tidegate.identity.keys import KeyEntry, KeyTable

__all__ = ["KeyEntry", "KeyTable"]
