"""What did the caller write for this number?

A float is not what stands in the text: 10000.0000000000001 reads as 10000.0, and 1e400 as
infinity. Lives here: the float that remembers its text, and the exact value of a number. Does
not live here: reading messages (stdio.py), rules for a number (strict.py). Imports no SDK.
"""

from decimal import Decimal


class Written(float):
    """A float for everybody, with the literal it was read from; perhaps infinite."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> "Written":
        """The float nearest to the literal `text`."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def exact(number: float) -> Decimal:
    """The value that was written; of a plain float the shortest decimal that reads back as it.

    Raises decimal.InvalidOperation for an exponent of twenty digits and the like.
    """
    if isinstance(number, Written):
        return Decimal(number.text)
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


__all__ = ["Written", "exact"]
