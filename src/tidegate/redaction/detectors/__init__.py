"""Which detectors are there?

Lives here: the built-in families by name. Does not live here: the rules themselves.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tidegate.redaction.detectors.cards import Cards
from tidegate.redaction.detectors.email import Email
from tidegate.redaction.detectors.iban import IbanNumber
from tidegate.redaction.detectors.keys import Keys, WebTokens
from tidegate.redaction.detectors.keywords import authorization_values, keyword_values
from tidegate.redaction.detectors.pem import PrivateKey
from tidegate.redaction.detectors.ssn import SocialSecurity
from tidegate.redaction.detectors.urls import UrlCredentials
from tidegate.redaction.hits import AnyDetector, Find

_SIMPLE: Mapping[str, Callable[[], AnyDetector]] = MappingProxyType(
    {
        "jwt": WebTokens,
        "key": Keys,
        "email": Email,
        "card": Cards,
        "ssn": SocialSecurity,
        "iban": IbanNumber,
        "private_key": PrivateKey,
        "url_credentials": UrlCredentials,
    }
)


def built_in(families: frozenset[str], *, strict_keywords: bool, find: Find) -> list[AnyDetector]:
    """The detectors of `families`. `find` is what all of them together find in a segment."""
    made = [make() for family, make in _SIMPLE.items() if family in families]
    if "keyword" in families:
        made.append(keyword_values(anything=strict_keywords, find=find))
    if "authorization" in families:
        made.append(authorization_values(anything=strict_keywords, find=find))
    return made
