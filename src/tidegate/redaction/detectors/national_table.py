"""Which national numbers are known, how is each written, and when is one believed?

Lives here: the table, by country. Does not live here: the checks (national_checks), the search
(national).
"""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.redaction import checksums
from tidegate.redaction.detectors import national_checks as checks


@dataclass(frozen=True, slots=True)
class NationalNumber:
    """One number of one country.

    `layouts` are regexes of the number as it is written, in upper case; `sizes` the lengths that
    it may have without separators. `check` takes it without them; None if there is nothing to
    check, and then only a cue can tell. What matches `distinct` is told by its form and check
    together; any other layout needs a word before it, unless its country is asked for by name.
    `cue` are the words, a regex.
    """

    country: str
    rule: str
    layouts: str
    sizes: tuple[int, ...]
    check: Callable[[str], bool] | None
    cue: str
    distinct: str = r"(?!)"


def _german(digits: str) -> bool:
    return checks.de_tax_shape(digits) and checksums.mod11_10(digits)


def _swiss(digits: str) -> bool:
    return checks.ch_ahv_prefix(digits) and checksums.ean13(digits)


ALL = ".*"
"""Every layout of the number is distinct."""

ANY_CUE = r"national (?:id|identity|identification)|identity (?:card|number)|personal (?:id|code)"
"""Words that stand before the number of any country."""

TABLE = (
    NationalNumber(
        "AR",
        "ar_cuit",
        r"[0-9]{2}-[0-9]{8}-[0-9]|[0-9]{11}",
        (11,),
        checks.ar_cuit,
        "cui[tl]",
        distinct=r".*-.*",
    ),
    NationalNumber(
        "AT",
        "at_svnr",
        r"[0-9]{4} ?[0-9]{6}",
        (10,),
        checks.at_svnr,
        r"sv-?nr|svnr|sozialversicherung\w*",
    ),
    NationalNumber(
        "AU",
        "au_tfn",
        r"[0-9]{3}[ \-]?[0-9]{3}[ \-]?[0-9]{3}",
        (9,),
        checks.au_tfn,
        "tfn|tax file",
    ),
    NationalNumber(
        "BE",
        "be_national",
        r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}|[0-9]{6}[ \-]?[0-9]{3}[ .\-]?[0-9]{2}",
        (11,),
        checks.be_national,
        r"rijksregister\w*|registre national|insz|niss",
        distinct=r".*\..*",
    ),
    NationalNumber("BG", "bg_egn", r"[0-9]{10}", (10,), checks.bg_egn, "egn"),
    NationalNumber(
        "BR",
        "br_cpf",
        r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}|[0-9]{11}",
        (11,),
        checks.br_cpf,
        "cpf",
        distinct=r".*-.*",
    ),
    NationalNumber(
        "CA",
        "ca_sin",
        r"[0-9]{3}[ \-]?[0-9]{3}[ \-]?[0-9]{3}",
        (9,),
        checks.ca_sin,
        r"\bsin\b|social insurance|\bnas\b",
    ),
    NationalNumber(
        "CH",
        "ch_ahv",
        r"756[.\- ]?[0-9]{4}[.\- ]?[0-9]{4}[.\- ]?[0-9]{2}",
        (13,),
        _swiss,
        "ahv|avs",
        distinct=ALL,
    ),
    NationalNumber(
        "CL",
        "cl_rut",
        r"[0-9]{1,2}\.?[0-9]{3}\.?[0-9]{3}-[0-9K]",
        (8, 9),
        checks.cl_rut,
        "ru[tn]",
        distinct=r".*\..*",
    ),
    NationalNumber(
        "CN",
        "cn_resident",
        r"[1-9][0-9]{16}[0-9X]",
        (18,),
        checks.cn_resident,
        "resident id|shenfenzheng",
        distinct=ALL,
    ),
    NationalNumber(
        "CZ",
        "cz_rodne_cislo",
        r"[0-9]{10}",
        (10,),
        checks.cz_rodne_cislo,
        r"rodn\w+ \w+slo|birth number",
    ),
    NationalNumber(
        "DE",
        "de_tax_id",
        r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}",
        (11,),
        _german,
        r"steuer-?id\w*|steueridentifikation\w*|idnr|tax id",
    ),
    NationalNumber("DK", "dk_cpr", r"[0-9]{6}-?[0-9]{4}", (10,), None, r"cpr(?:-?nr|-?nummer)?"),
    NationalNumber(
        "ES",
        "es_dni",
        r"[0-9]{8}-?[A-Z]|[XYZ]-?[0-9]{7}-?[A-Z]",
        (9,),
        checks.es_dni,
        "dni|nie|nif",
        distinct=ALL,
    ),
    NationalNumber(
        "FI",
        "fi_hetu",
        r"[0-9]{6}[\-+A-FU-Y][0-9]{3}[0-9A-Y]",
        (10, 11),
        checks.fi_hetu,
        "hetu|henkil\\w+tunnus",
        distinct=ALL,
    ),
    NationalNumber(
        "FR",
        "fr_nir",
        r"[1-478] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}"
        r"|[1-478][0-9]{4}2[AB][0-9]{8}",
        (15,),
        checks.fr_nir,
        "nir|s.curit. sociale|insee",
        distinct=ALL,
    ),
    NationalNumber(
        "GB",
        "gb_nhs",
        r"[0-9]{3}[ \-]?[0-9]{3}[ \-]?[0-9]{4}",
        (10,),
        checksums.nhs,
        "nhs",
        distinct=r".* .*",
    ),
    NationalNumber(
        "GB",
        "gb_nino",
        r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-PR-TW-Z][0-9]{6}[A-D]",
        (9,),
        None,
        r"nino\b|national insurance|\bni (?:no|number)",
    ),
    NationalNumber(
        "IE",
        "ie_pps",
        r"[0-9]{7}[A-W][A-IW]?",
        (8, 9),
        checks.ie_pps,
        r"pps(?:n|\b)",
    ),
    NationalNumber(
        "IL",
        "il_id",
        r"[0-9]{9}",
        (9,),
        checks.il_id,
        "teudat zehut|israeli id",
    ),
    NationalNumber(
        "IN",
        "in_aadhaar",
        r"[2-9][0-9]{3}[ \-]?[0-9]{4}[ \-]?[0-9]{4}",
        (12,),
        checks.in_aadhaar,
        "aadhaa?r|uidai",
        distinct=r".*[ -].*",
    ),
    NationalNumber(
        "IN",
        "in_pan",
        r"[A-Z]{3}[ABCFGHLJPT][A-Z][0-9]{4}[A-Z]",
        (10,),
        None,
        r"\bpan\b|permanent account",
    ),
    NationalNumber(
        "IT",
        "it_codice_fiscale",
        r"[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]",
        (16,),
        checks.it_codice_fiscale,
        "codice fiscale",
        distinct=ALL,
    ),
    NationalNumber(
        "JP",
        "jp_my_number",
        r"[0-9]{4}[ \-]?[0-9]{4}[ \-]?[0-9]{4}",
        (12,),
        checks.jp_my_number,
        "my number|individual number",
    ),
    NationalNumber(
        "KR",
        "kr_rrn",
        r"[0-9]{6}-?[0-9]{7}",
        (13,),
        checks.kr_rrn,
        "rrn|resident registration",
        distinct=r".*-.*",
    ),
    NationalNumber(
        "MX",
        "mx_curp",
        r"[A-Z]{4}[0-9]{6}[HMX][A-Z]{5}[0-9A-Z][0-9]",
        (18,),
        checks.mx_curp,
        "curp",
        distinct=ALL,
    ),
    NationalNumber(
        "NL",
        "nl_bsn",
        r"[0-9]{9}|[0-9]{4}\.[0-9]{2}\.[0-9]{3}",
        (9,),
        checks.nl_bsn,
        "bsn|burgerservice\\w*|sofi-?nummer",
        distinct=r".*\..*",
    ),
    NationalNumber(
        "NO",
        "no_fodselsnummer",
        r"[0-9]{6} ?[0-9]{5}",
        (11,),
        checks.no_fodselsnummer,
        r"f\w+dselsnummer|personnummer",
        distinct=ALL,
    ),
    NationalNumber("PL", "pl_pesel", r"[0-9]{11}", (11,), checks.pl_pesel, "pesel"),
    NationalNumber(
        "PT",
        "pt_nif",
        r"[0-9]{3} ?[0-9]{3} ?[0-9]{3}",
        (9,),
        checks.pt_nif,
        "nif|contribuinte",
    ),
    NationalNumber("RO", "ro_cnp", r"[1-9][0-9]{12}", (13,), checks.ro_cnp, "cnp|cod numeric"),
    NationalNumber(
        "SE",
        "se_personnummer",
        r"(?:[0-9]{2})?[0-9]{6}[\-+]?[0-9]{4}",
        (10, 12),
        checks.se_personnummer,
        "personnummer|personal identity number",
        distinct=r".*[-+].*",
    ),
    NationalNumber(
        "SG",
        "sg_nric",
        r"[STFGM][0-9]{7}[A-Z]",
        (9,),
        checks.sg_nric,
        "nric|\\bfin\\b",
        distinct=ALL,
    ),
    NationalNumber("TR", "tr_kimlik", r"[1-9][0-9]{10}", (11,), checks.tr_kimlik, "kimlik|tckn"),
    NationalNumber(
        "TW",
        "tw_national",
        r"[A-Z][1289][0-9]{8}",
        (10,),
        checks.tw_national,
        "taiwan\\w* id|roc id",
    ),
    NationalNumber(
        "US",
        "us_itin",
        r"9[0-9]{2}[ \-]?[0-9]{2}[ \-]?[0-9]{4}",
        (9,),
        checks.us_itin,
        r"itin\b|taxpayer (?:id|number)",
    ),
    NationalNumber(
        "ZA", "za_id", r"[0-9]{13}", (13,), checks.za_id, "south african id|rsa id|id number"
    ),
)

COUNTRIES = tuple(sorted({row.country for row in TABLE}))
