"""Which detectors are there?

Lives here: the built-in families by name. Does not live here: the rules themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tidegate.redaction.cues import CUES
from tidegate.redaction.detectors import national_table, phone_table
from tidegate.redaction.detectors.cards import Cards
from tidegate.redaction.detectors.email import Email
from tidegate.redaction.detectors.email_forms import InternationalEmail, QuotedEmail
from tidegate.redaction.detectors.email_words import EmailInWords
from tidegate.redaction.detectors.iban import IbanNumber
from tidegate.redaction.detectors.keys import BotTokens, Keys, SignedUrls, WebTokens
from tidegate.redaction.detectors.keywords import authorization_values, keyword_values
from tidegate.redaction.detectors.national import NationalIds
from tidegate.redaction.detectors.network import IPv4Addresses, IPv6Addresses, MacAddresses
from tidegate.redaction.detectors.passport import Passports
from tidegate.redaction.detectors.pem import PrivateKey
from tidegate.redaction.detectors.phone import PhoneNumbers
from tidegate.redaction.detectors.ssn import SocialSecurity
from tidegate.redaction.detectors.urls import UrlCredentials
from tidegate.redaction.detectors.wallets import Wallets
from tidegate.redaction.hits import AnyDetector, Find

_SIMPLE: Mapping[str, tuple[Callable[[], AnyDetector], ...]] = MappingProxyType(
    {
        "private_key": (PrivateKey,),
        "jwt": (WebTokens,),
        "key": (Keys, BotTokens, SignedUrls),
        "url_credentials": (UrlCredentials,),
        "email": (Email,),
        "email_international": (InternationalEmail,),
        "email_quoted": (QuotedEmail,),
        "email_obfuscated": (EmailInWords,),
        "card": (Cards,),
        "iban": (IbanNumber,),
        "wallet": (Wallets,),
        "ssn": (SocialSecurity,),
        "passport": (Passports,),
        "ip": (IPv4Addresses, IPv6Addresses),
        "ip_private": (
            lambda: IPv4Addresses("ip_private", private=True),
            lambda: IPv6Addresses("ip_private", private=True),
        ),
        "mac": (MacAddresses,),
    }
)
_REGIONAL: Mapping[str, Callable[[Sequence[str]], AnyDetector]] = MappingProxyType(
    {"national_id": NationalIds, "phone": PhoneNumbers}
)
KNOWN_REGIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"national_id": national_table.COUNTRIES, "phone": phone_table.COUNTRIES}
)
"""The countries (ISO 3166, two letters) that each family with `regions` knows."""


def built_in(
    families: frozenset[str],
    *,
    strict_keywords: bool,
    find: Find,
    regions: Mapping[str, Sequence[str]],
) -> list[AnyDetector]:
    """The detectors of `families`. `find` is what all of them together find in a segment.

    `regions` are the countries asked for by name, of families in KNOWN_REGIONS.
    """
    made: list[AnyDetector] = [
        make() for family, makers in _SIMPLE.items() if family in families for make in makers
    ]
    made += [
        make(regions.get(family, ())) for family, make in _REGIONAL.items() if family in families
    ]
    made += [each for family, make in CUES.items() if family in families for each in make()]
    if "keyword" in families:
        made.append(keyword_values(anything=strict_keywords, find=find))
    if "authorization" in families:
        made.append(authorization_values(anything=strict_keywords, find=find))
    return made
