"""Which detectors are there?

Lives here: the built-in families by name. Does not live here: the rules themselves.
"""

from tidegate.redaction.detectors.email import Email
from tidegate.redaction.detectors.keys import Keys, WebTokens
from tidegate.redaction.detectors.numbers import Cards, SocialSecurity

__all__ = ["Cards", "Email", "Keys", "SocialSecurity", "WebTokens"]
