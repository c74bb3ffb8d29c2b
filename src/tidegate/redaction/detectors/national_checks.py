"""Does a national number satisfy the rule by which its country checks it?

Lives here: one function for each country's number, on the number without separators and in upper
case. Does not live here: how a number is written, and which word stands before it (national).
Each rule is the one that the issuing office publishes; the names are the offices' own.
"""

import re

from tidegate.redaction.checksums import is_digits, luhn, verhoeff, weighted


def is_date(year: int, month: int, day: int) -> bool:
    """The day exists; February may always have 29 days, since the century is often unknown."""
    longest = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return year >= 0 and 1 <= month <= 12 and 1 <= day <= longest[month - 1]


def _six_digit_date(digits: str, *, month_plus: tuple[int, ...] = (0,), day_plus: int = 0) -> bool:
    """`YYMMDD`, where an office may add to the month (century, sex) or to the day."""
    year, month, day = int(digits[:2]), int(digits[2:4]), int(digits[4:6])
    days = {day, day - day_plus}
    return any(is_date(year, month - plus, one) for plus in month_plus for one in days)


def _ddmmyy(digits: str) -> bool:
    return is_date(int(digits[4:6]), int(digits[2:4]), int(digits[:2]))


def br_cpf(digits: str) -> bool:
    """Brazil, Cadastro de Pessoas Físicas: two check digits, modulus 11."""
    if len(set(digits)) == 1:
        return False
    first = weighted(digits[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = weighted(digits[:10], range(11, 1, -1)) * 10 % 11 % 10
    return digits[9:] == f"{first}{second}"


def es_dni(text: str) -> bool:
    """Spain, DNI and NIE: the letter is the number modulo 23."""
    number = text[:-1].translate(str.maketrans("XYZ", "012"))
    return is_digits(number) and "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == text[-1]


def fr_nir(text: str) -> bool:
    """France, numéro d'inscription au répertoire: key of two digits, modulus 97."""
    number = text[:13].replace("2A", "19").replace("2B", "18")
    month = text[3:5]
    plausible = is_digits(number) and (
        "01" <= month <= "12" or "20" <= month <= "42" or month >= "50"
    )
    return plausible and int(text[13:]) == 97 - int(number) % 97


# What a digit, or a letter with A as 0, counts at an odd place.
_ODD = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)


def it_codice_fiscale(text: str) -> bool:
    """Italy, codice fiscale: the last letter is a sum modulo 26."""
    values = [int(char) if char.isdigit() else ord(char) - ord("A") for char in text[:15]]
    total = sum(_ODD[value] for value in values[::2]) + sum(values[1::2])
    return chr(ord("A") + total % 26) == text[15]


def nl_bsn(digits: str) -> bool:
    """Netherlands, burgerservicenummer: the test of eleven."""
    return digits[:2] != "00" and weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def in_aadhaar(digits: str) -> bool:
    """India, Aadhaar: twelve digits, none of them leading 0 or 1, Verhoeff."""
    return digits[0] > "1" and len(set(digits)) > 1 and verhoeff(digits)


def pl_pesel(digits: str) -> bool:
    """Poland, PESEL: date of birth with the century in the month, check digit."""
    total = weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1))
    return total % 10 == 0 and _six_digit_date(digits, month_plus=(0, 20, 40, 60, 80))


def be_national(digits: str) -> bool:
    """Belgium, rijksregisternummer: date of birth, remainder modulo 97."""
    check = int(digits[9:])
    fits = check in {97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97}
    month = int(digits[2:4])
    return fits and (month in {0, 20, 40} or _six_digit_date(digits, month_plus=(0, 20, 40)))


def de_tax_shape(digits: str) -> bool:
    """Germany, Steueridentifikationsnummer: one digit of the first ten stands twice or thrice."""
    counts = sorted(digits[:10].count(digit) for digit in "0123456789")
    return digits[0] != "0" and counts[-1] in {2, 3} and counts[-2] == 1


def at_svnr(digits: str) -> bool:
    """Austria, Sozialversicherungsnummer: fourth digit checks, then the date of birth."""
    total = weighted(digits[:3] + digits[4:], (3, 7, 9, 5, 8, 4, 2, 1, 6))
    return digits[0] != "0" and total % 11 == int(digits[3]) and 1 <= int(digits[6:8]) <= 15


def pt_nif(digits: str) -> bool:
    """Portugal, número de identificação fiscal: modulus 11."""
    check = 11 - weighted(digits[:8], range(9, 1, -1)) % 11
    return digits[0] in "12356789" and (check if check < 10 else 0) == int(digits[8])


def se_personnummer(digits: str) -> bool:
    """Sweden, personnummer: date of birth (the day plus 60 for others), Luhn over ten digits."""
    return luhn(digits[-10:]) and _six_digit_date(digits[-10:], day_plus=60)


def fi_hetu(text: str) -> bool:
    """Finland, henkilötunnus: date of birth, sign of the century, check character."""
    number = text[:6] + text[-4:-1]
    return _ddmmyy(text) and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(number) % 31] == text[-1]


def dk_cpr(digits: str) -> bool:
    """Denmark, CPR: a date of birth; numbers since 2007 have no check digit."""
    return _ddmmyy(digits)


def no_fodselsnummer(digits: str) -> bool:
    """Norway, fødselsnummer: date of birth (D numbers: day plus 40), two check digits."""
    first = weighted(digits, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1))
    second = weighted(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1))
    day = int(digits[:2])
    dated = is_date(int(digits[4:6]), int(digits[2:4]), day - 40 if day > 40 else day)
    return first % 11 == 0 and second % 11 == 0 and dated


def ie_pps(text: str) -> bool:
    """Ireland, PPS number: the first letter is a sum modulo 23."""
    extra = text[8:9]
    total = weighted(text[:7], range(8, 1, -1))
    total += 9 * (ord(extra) - ord("A") + 1) if extra and extra != "W" else 0
    return "WABCDEFGHIJKLMNOPQRSTUV"[total % 23] == text[7]


def ro_cnp(digits: str) -> bool:
    """Romania, cod numeric personal: sex and century, date of birth, modulus 11."""
    check = weighted(digits[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return digits[0] != "0" and _six_digit_date(digits[1:]) and check % 10 == int(digits[12])


def bg_egn(digits: str) -> bool:
    """Bulgaria, EGN: date of birth with the century in the month, modulus 11."""
    check = weighted(digits[:9], (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10
    return _six_digit_date(digits, month_plus=(0, 20, 40)) and check == int(digits[9])


def cz_rodne_cislo(digits: str) -> bool:
    """Czechia and Slovakia, rodné číslo: date of birth, divisible by eleven."""
    dated = _six_digit_date(digits, month_plus=(0, 20, 50, 70))
    return dated and (int(digits) % 11 == 0 or (int(digits[:9]) % 11 == 10 and digits[9] == "0"))


def tr_kimlik(digits: str) -> bool:
    """Türkiye, kimlik number: two check digits."""
    odd, even = sum(map(int, digits[0:9:2])), sum(map(int, digits[1:8:2]))
    tenth = (7 * odd - even) % 10
    return digits[0] != "0" and digits[9:] == f"{tenth}{sum(map(int, digits[:10])) % 10}"


def cn_resident(text: str) -> bool:
    """China, resident identity card: date of birth, ISO/IEC 7064 MOD 11-2."""
    total = 0
    for char in text:
        total = (total * 2 + (10 if char == "X" else int(char))) % 11
    dated = is_date(int(text[6:10]), int(text[10:12]), int(text[12:14]))
    return total == 1 and dated and "1800" <= text[6:10] <= "2099"


def kr_rrn(digits: str) -> bool:
    """South Korea, resident registration number: date of birth, modulus 11."""
    check = (11 - weighted(digits[:12], (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return _six_digit_date(digits) and check == int(digits[12])


def jp_my_number(digits: str) -> bool:
    """Japan, individual number: twelve digits, modulus 11."""
    rest = weighted(digits[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (11 - rest if rest > 1 else 0) == int(digits[11])


_NRIC = {"S": (0, "JZIHGFEDCBA"), "T": (4, "JZIHGFEDCBA")}
_FIN = {"F": (0, "XWUTRQPNMLK"), "G": (4, "XWUTRQPNMLK"), "M": (3, "KLJNPQRTUWX")}


def sg_nric(text: str) -> bool:
    """Singapore, NRIC and FIN: the last letter is a sum modulo 11."""
    offset, letters = {**_NRIC, **_FIN}[text[0]]
    place = (weighted(text[1:8], (2, 7, 6, 5, 4, 3, 2)) + offset) % 11
    # The letters of the M series are listed from the other end.
    return letters[10 - place if text[0] == "M" else place] == text[8]


def tw_national(text: str) -> bool:
    """Taiwan, national identification number: a letter stands for a region."""
    region = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(text[0]) + 10
    total = region // 10 + region % 10 * 9
    return (total + weighted(text[1:], (8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10 == 0


def au_tfn(digits: str) -> bool:
    """Australia, tax file number: nine digits, modulus 11."""
    return weighted(digits, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def ca_sin(digits: str) -> bool:
    """Canada, social insurance number: Luhn; no number begins with 0 or 8."""
    return digits[0] not in "08" and luhn(digits)


_CURP_CHARS = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"


def mx_curp(text: str) -> bool:
    """Mexico, CURP: date of birth, check digit modulo 10."""
    total = sum(_CURP_CHARS.index(char) * (18 - place) for place, char in enumerate(text[:17]))
    return _six_digit_date(text[4:10]) and text[17] == str(-total % 10)


def ar_cuit(digits: str) -> bool:
    """Argentina, CUIT and CUIL: modulus 11."""
    check = (11 - weighted(digits[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11) % 11
    return digits[:2] in {"20", "23", "24", "27", "30", "33", "34"} and check == int(digits[10])


def cl_rut(text: str) -> bool:
    """Chile, RUT: modulus 11, K for ten."""
    number, check = text[:-1], text[-1]
    rest = 11 - weighted(number[::-1], (2, 3, 4, 5, 6, 7, 2, 3, 4)) % 11
    return "0123456789K0"[rest if rest != 11 else 11] == check


def za_id(digits: str) -> bool:
    """South Africa, identity number: date of birth, citizenship, Luhn."""
    return digits[10] in "012" and _six_digit_date(digits) and luhn(digits)


def il_id(digits: str) -> bool:
    """Israel, identity number: Luhn over nine digits."""
    return digits != "000000000" and luhn(digits)


_AHV = re.compile(r"756[0-9]{10}")


def ch_ahv_prefix(digits: str) -> bool:
    """Switzerland, AHV number: begins with the country code 756."""
    return _AHV.fullmatch(digits) is not None


def us_itin(digits: str) -> bool:
    """United States, individual taxpayer number: 9, then a group from the published ranges."""
    group = int(digits[3:5])
    in_use = 50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 99
    return digits[0] == "9" and in_use and group not in {89, 93}


_NO_NINO = frozenset({"BG", "GB", "NK", "KN", "TN", "NT", "ZZ"})


def gb_nino(text: str) -> bool:
    """United Kingdom, National Insurance number: letters that are in use; no check digit."""
    return text[:2] not in _NO_NINO and text[1] != "O"
