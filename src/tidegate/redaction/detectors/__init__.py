"""Which detectors are there?

Lives here: the built-in families by name. Does not live here: the rules themselves.
"""

from tidegate.redaction.detectors.cards import Cards
from tidegate.redaction.detectors.email import Email
from tidegate.redaction.detectors.keys import Keys, WebTokens
from tidegate.redaction.detectors.ssn import SocialSecurity

__all__ = ["Cards", "Email", "Keys", "SocialSecurity", "WebTokens"]
