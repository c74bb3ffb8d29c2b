"""Which detectors are there?

Lives here: the built-in families by name. Does not live here: the rules themselves.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tidegate.redaction import modes
from tidegate.redaction.detectors.cards import Cards
from tidegate.redaction.detectors.email import Email
from tidegate.redaction.detectors.keys import Keys, WebTokens
from tidegate.redaction.detectors.ssn import SocialSecurity
from tidegate.redaction.hits import AnyDetector, Find

_SIMPLE: Mapping[str, Callable[[], AnyDetector]] = MappingProxyType(
    {
        "jwt": WebTokens,
        "key": Keys,
        "email": Email,
        "card": Cards,
        "ssn": SocialSecurity,
        "iban": modes.IbanNumber,
        "private_key": modes.PrivateKey,
        "url_credentials": modes.UrlCredentials,
    }
)


def built_in(families: frozenset[str], *, strict_keywords: bool, find: Find) -> list[AnyDetector]:
    """The detectors of `families`. `find` is what all of them together find in a segment."""
    made = [make() for family, make in _SIMPLE.items() if family in families]
    if "keyword" in families:
        made.append(modes.keyword_values(anything=strict_keywords, find=find))
    if "authorization" in families:
        made.append(modes.authorization_values(anything=strict_keywords, find=find))
    return made
