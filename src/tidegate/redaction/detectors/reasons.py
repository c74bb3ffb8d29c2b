"""By what was this value recognized, in words?

Lives here: a sentence for each rule. Does not live here: why something is no value (near_numbers,
near_texts). A sentence says sizes and prefixes, never the value.
"""

import re
from types import MappingProxyType

from tidegate.redaction.detectors.cards import in_network
from tidegate.redaction.detectors.key_formats import FORMATS
from tidegate.redaction.detectors.keys import checks

_SENTENCES = MappingProxyType(
    {
        "email": "a local part, @ and a domain with a top level",
        "email_international": "a local part, @ and a domain, not all in Latin letters",
        "email_quoted": "a local part in quotes, @ and a domain",
        "email_words": "a name, at, and a domain with dot in words",
        "ssn": "three, two and four digits, all in ranges that are issued",
        "ssn_context": 'nine digits behind a word such as "SSN"',
        "iban": "the length of its country, and check digits that are right (modulus 97)",
        "jwt": "begins like a JSON object in base64, and a second part or 200 characters follow",
        "private_key": "the opening line of a private key with a key behind it",
        "url_credentials": "a user name and a password in front of the @ of a URL",
        "keyword_value": 'a value behind a word such as "password:"',
        "authorization_value": "a value behind Authorization",
        "authorization": "a value behind Authorization and its scheme",
        "telegram_token": "a number, a colon, A and at least 33 characters",
        "url_signature": "the signature of a URL",
        "phone_international": "a calling code and the digits of a number",
        "phone_national": "written as numbers are in one of the countries",
        "phone_context": 'digits beside a word such as "phone", or with an extension',
        "ipv4": "four parts up to 255",
        "ipv6": "the groups of an IPv6 address",
        "mac": "six pairs of hexadecimal digits",
        "passport": "the form of a passport number behind a word for a passport",
        "base58": "the check sum of Base58Check is right",
        "wif": "a private key whose check sum is right",
        "extended": "an extended key whose check sum is right",
        "bech32": "the check sum of Bech32 is right",
        "name_introduction": 'capitalized words behind "my name is" or the like',
        "name_salutation": "capitalized words behind a salutation",
        "name_title": "capitalized words behind a title",
        "name_label": "capitalized words behind the label of a form or the close of a letter",
        "birth_date": "a date behind a word for birth",
        "address": "number, street, town and postcode",
        "address_french": "number, street, postcode and town, as in France",
        "address_german": "street, number, postcode and town, as in Germany or the Netherlands",
        "address_cued": 'number and street behind "address" or the like',
        "deny_list": "a literal of a deny list",
        "ethereum": "capitals that check (ERC-55), or a word such as wallet before it",
    }
)
_PREFIXES = MappingProxyType({form.name: re.compile(form.prefix) for form in FORMATS})


def recognized(family: str, rule: str, value: str) -> str:
    """Why `value`, as the detector saw it, is a value of `family` under `rule`."""
    if rule == "card":
        return _card(value)
    if rule in _PREFIXES:
        return _key(rule, value)
    if family == "national_id":
        return f"the layout of {rule}, its check digit if it has one, and its form or its word"
    return _SENTENCES.get(rule, f"what the detector {rule} describes")


def _card(value: str) -> str:
    digits = "".join(char for char in value if char.isdigit())
    known = len(digits) >= 13 and in_network(digits)
    why = "a prefix of a card network" if known else "behind a word for a card"
    return f"{len(digits)} digits, Luhn check right, {why}"


def _key(rule: str, value: str) -> str:
    prefix = _PREFIXES[rule].match(value)
    size = len(value) - (prefix.end() if prefix else 0)
    named = f"prefix {prefix[0]} and {size} characters" if prefix else f"{size} characters"
    right = checks(rule, value)
    if right is None:
        return named
    return f"{named}, check sum {'right' if right else 'wrong, hidden all the same'}"
