"""How are telephone numbers written in each country?

Lives here: calling codes and the national ways of writing, by country. Does not live here: the
search, the words around a number (phone). Source: the numbering plans that national regulators
publish, and the list of codes assigned under ITU-T E.164.
"""

from dataclasses import dataclass

CODES = (
    r"1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|21[0-8]|2[2346][0-9]|25[0-8]"
    r"|29[01789]|35[0-9]|37[0-8]|38[0-35-79]|42[013]|50[0-9]|59[0-9]|67[02-9]|68[0-35-9]|69[0-2]"
    r"|80[08]|85[02356]|87[08]|88[0-36-8]|96[0-8]|97[0-79]|99[2-8]"
)
"""The calling codes of countries and services, a regex."""


@dataclass(frozen=True, slots=True)
class NumberingPlan:
    """The national numbers of one country, as regexes of the whole written number.

    `grouped` is telling enough to be believed without a word before it. `plain` is what people
    write too, but so do others: sums, part numbers, years. It counts only if the country is asked
    for by name.
    """

    country: str
    grouped: str
    plain: str


_S = r"[ .\-]"
_THREES = rf"[0-9]{{3}}{_S}?[0-9]{{3}}"
NOTHING = "(?!)"
# A trunk zero, and the rest in one to four groups: most of Europe, Asia and Africa.
TRUNK = rf"0[1-9][0-9]{{0,4}}(?:{_S}[0-9]{{2,8}}){{1,4}}|0[1-9][0-9]{{1,4}}/ ?[0-9]{{5,8}}"
# The area in parentheses, with a trunk zero or with two groups behind it.
AREA = (
    rf"\(0[1-9][0-9]{{0,4}}\)[ .\-]?[0-9]{{3,8}}(?:{_S}[0-9]{{2,4}})?"
    rf"|\([1-9][0-9]{{1,3}}\) ?[0-9]{{3,5}}{_S}[0-9]{{3,4}}"
)
# Three, three and four digits.
NANP = (
    rf"(?:1{_S})?[2-9][0-9]{{2}}([.\-])[2-9][0-9]{{2}}\1[0-9]{{4}}"
    rf"|(?:1{_S}?)?\([0-9]{{3}}\) ?[0-9]{{3}}{_S}[0-9]{{4}}"
)
_BARE = "0[1-9][0-9]{7,9}"

_TRUNK_PLAIN = {
    "AT": "0[1-9][0-9]{6,11}",
    "AU": rf"0[2-478][0-9]{{8}}|1[38]00{_S}?{_THREES}",
    "BE": _BARE,
    "BR": rf"[1-9][0-9]{_S}?9?[0-9]{{4}}{_S}?[0-9]{{4}}",
    "CH": _BARE,
    "CN": rf"1[3-9][0-9]{_S}?[0-9]{{4}}{_S}?[0-9]{{4}}",
    "DE": "0[1-9][0-9]{6,11}",
    "FI": _BARE,
    "FR": _BARE,
    "GB": _BARE,
    "HU": rf"06{_S}?[0-9]{{1,2}}{_S}?[0-9]{{3}}{_S}?[0-9]{{3,4}}",
    "IE": _BARE,
    "IL": _BARE,
    "IN": rf"0[1-9][0-9]{{8,9}}|0?[6-9][0-9]{{4}}{_S}?[0-9]{{5}}",
    "IT": rf"0[1-9][0-9]{{5,9}}|3[0-9]{{2}}{_S}?[0-9]{{3}}{_S}?[0-9]{{3,4}}",
    "JP": _BARE,
    "KR": _BARE,
    "NL": _BARE,
    "NZ": _BARE,
    "SE": _BARE,
    "TR": _BARE,
    "ZA": _BARE,
}
_OTHER_PLAIN = {
    "CZ": rf"[2-9][0-9]{{2}}{_S}?{_THREES}",
    "DK": rf"[2-9][0-9](?:{_S}?[0-9]{{2}}){{3}}",
    "ES": rf"[6789][0-9]{{2}}{_S}?{_THREES}|[6789][0-9]{{2}}(?:{_S}[0-9]{{2}}){{3}}",
    "GR": rf"[26][0-9]{{2,3}}{_S}?[0-9]{{3}}{_S}?[0-9]{{3,4}}",
    "HK": rf"[2-9][0-9]{{3}}{_S}?[0-9]{{4}}",
    "MX": rf"[1-9][0-9]{{1,2}}{_S}?[0-9]{{3,4}}{_S}?[0-9]{{4}}",
    "NO": rf"[2-9][0-9](?:{_S}?[0-9]{{2}}){{3}}|[49][0-9]{{2}} [0-9]{{2}} [0-9]{{3}}",
    "PL": rf"[1-9][0-9]{{2}}{_S}?{_THREES}|[1-9][0-9](?:{_S}[0-9]{{2,3}}){{3}}",
    "PT": rf"(?:\(351\) ?)?[239][0-9]{{2}}{_S}?{_THREES}",
    "RU": rf"(?:8{_S}?)?\(?[3489][0-9]{{2}}\)?{_S}?[0-9]{{3}}(?:{_S}?[0-9]{{2}}){{2}}",
    "SG": rf"[3689][0-9]{{3}}{_S}?[0-9]{{4}}",
}
_NANP_PLAIN = rf"(?:1{_S}?)?[2-9][0-9]{{2}}{_S}?[2-9][0-9]{{2}}{_S}?[0-9]{{4}}"

PLANS = (
    *(NumberingPlan(country, NANP, _NANP_PLAIN) for country in ("CA", "US")),
    *(NumberingPlan(country, f"{TRUNK}|{AREA}", _TRUNK_PLAIN[country]) for country in _TRUNK_PLAIN),
    *(NumberingPlan(country, AREA, _OTHER_PLAIN[country]) for country in _OTHER_PLAIN),
)
COUNTRIES = tuple(sorted(plan.country for plan in PLANS))
