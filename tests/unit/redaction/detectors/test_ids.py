import pytest

from tests.unit.redaction.detectors.finding import check, only
from tests.unit.redaction.detectors.test_checksums import NATIONAL
from tidegate.redaction.detectors import KNOWN_REGIONS
from tidegate.redaction.detectors.national_table import TABLE

pytestmark = pytest.mark.full

ID, PASSPORT, WALLET = "[REDACTED_NATIONAL_ID]", "[REDACTED_PASSPORT]", "[REDACTED_WALLET]"
ANY = only("national_id")
RULES = {row.rule: row for row in TABLE}
# Written as their offices write them.
WRITTEN = {
    "au_tfn": "123 456 782",
    "be_national": "85.07.30-033.28",
    "br_cpf": "111.444.777-35",
    "ca_sin": "130 692 544",
    "ch_ahv": "756.9217.0769.85",
    "cl_rut": "12.531.909-2",
    "de_tax_id": "36 574 261 809",
    "dk_cpr": "010190-1234",
    "fr_nir": "2 95 10 99 126 111 93",
    "gb_nhs": "943 476 5919",
    "gb_nino": "AB123456C",
    "in_aadhaar": "4991 1866 5246",
    "in_pan": "ABCPE1234F",
    "kr_rrn": "971013-9019902",
    "no_fodselsnummer": "151086 95088",
    "se_personnummer": "640823-3234",
    "us_itin": "912-90-2654",
    "ar_cuit": "20-05536168-2",
}


def written(rule: str) -> str:
    return WRITTEN.get(rule) or NATIONAL[rule].split()[0]


@pytest.mark.parametrize("rule", RULES)
def test_a_number_is_found_in_its_own_country(rule: str) -> None:
    row = RULES[rule]
    policy = ANY.with_regions("national_id", row.country)
    text = written(rule)
    check(policy, f"x {text}, y", f"x {ID}, y" if row.check else f"x {text}, y")


WORDS = {
    "ar_cuit": "CUIT",
    "at_svnr": "SVNR",
    "au_tfn": "TFN",
    "be_national": "rijksregisternummer",
    "bg_egn": "EGN",
    "br_cpf": "CPF",
    "ca_sin": "SIN",
    "ch_ahv": "AHV",
    "cl_rut": "RUT",
    "cn_resident": "resident ID",
    "cz_rodne_cislo": "rodn\u00e9 \u010d\u00edslo",
    "de_tax_id": "Steuer-ID",
    "dk_cpr": "CPR-nr",
    "es_dni": "DNI",
    "fi_hetu": "hetu",
    "fr_nir": "NIR",
    "gb_nhs": "NHS",
    "gb_nino": "National Insurance",
    "ie_pps": "PPSN",
    "il_id": "teudat zehut",
    "in_aadhaar": "Aadhaar",
    "in_pan": "PAN",
    "it_codice_fiscale": "codice fiscale",
    "jp_my_number": "My Number",
    "kr_rrn": "RRN",
    "mx_curp": "CURP",
    "nl_bsn": "BSN",
    "no_fodselsnummer": "f\u00f8dselsnummer",
    "pl_pesel": "PESEL",
    "pt_nif": "NIF",
    "ro_cnp": "CNP",
    "se_personnummer": "personnummer",
    "sg_nric": "NRIC",
    "tr_kimlik": "T.C. kimlik",
    "tw_national": "Taiwan ID",
    "us_itin": "ITIN",
    "za_id": "South African ID",
}


@pytest.mark.parametrize("rule", RULES)
def test_a_number_is_found_behind_its_word_whatever_the_country(rule: str) -> None:
    check(ANY, f"{WORDS[rule]}: {written(rule)}.", f"{WORDS[rule]}: {ID}.")


# An ITIN has no check digit; its groups alone are bounded.
@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if RULES[rule].check and rule != "us_itin"]
)
def test_a_wrong_number_is_left_alone_even_behind_its_word(rule: str) -> None:
    number = written(rule)
    last = {"9": "8", "Z": "Y"}.get(number[-1], chr(ord(number[-1]) + 1))
    check(ANY, f"{WORDS[rule]}: {number[:-1]}{last}", f"{WORDS[rule]}: {number[:-1]}{last}")


@pytest.mark.parametrize(
    "text",
    [
        "111222333",  # a BSN among other things
        "44051401458",
        "9434765919",
        "1764500000005",
        "130692544",
        "1234567T",
        "AB123456C",
        "ABCPE1234F",
        "a943 476 5919",
        "12 943 476 5919",
        "943 476 5919 12",
        "x-12345678Z",
        "12345678Z-1",
        "12345678A",
        "RSSMRA85T10A562T",
        "111.444.777-36",
        "2341 2341 2347",
        "3f2504e0-4f89-41d3-9a0c-630433107186",
        "",
    ],
)
def test_a_number_without_form_or_word_is_left_alone(text: str) -> None:
    check(ANY, text, text)


def test_the_words_are_those_of_the_table_and_the_countries_are_known() -> None:
    assert set(WORDS) == set(RULES)
    assert {row.country for row in TABLE} == set(KNOWN_REGIONS["national_id"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("passport number: X1234567", f"passport number: {PASSPORT}"),
        ("Passport No. 123456789,", f"Passport No. {PASSPORT},"),
        ("Passport number:\nX1234567", f"Passport number:\n{PASSPORT}"),
        ("my passport is AB1234567", f"my passport is {PASSPORT}"),
        ("Reisepass C01X00T47", f"Reisepass {PASSPORT}"),
        ("n\u00b0 de passeport 12AB34567", f"n\u00b0 de passeport {PASSPORT}"),
    ],
)
def test_a_passport_number_is_masked_behind_its_word(text: str, shown: str) -> None:
    check(only("passport"), text, shown)


@pytest.mark.parametrize(
    "text",
    [
        "X1234567",
        "passport holders",
        "passport: ABCDEFG",
        "passport X12345678901",
        "passport.py line 123",
        "passport\n\nX1234567",
        "passport 5 X1234567",
    ],
)
def test_without_the_word_nothing_is_a_passport_number(text: str) -> None:
    check(only("passport"), text, text)


BITCOIN = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
ETHEREUM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (BITCOIN, WALLET),
        (f"({BITCOIN}),", f"({WALLET}),"),
        ("3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", WALLET),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4.", f"{WALLET}."),
        ("BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", WALLET),
        ("bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0", WALLET),
        (ETHEREUM, WALLET),
        (f"ETH {ETHEREUM.lower()}", f"ETH {WALLET}"),
        ("5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ", WALLET),
    ],
)
def test_an_address_or_key_of_a_wallet_is_masked(text: str, shown: str) -> None:
    check(only("wallet"), text, shown)


@pytest.mark.parametrize(
    "text",
    [
        BITCOIN[:-1] + "b",
        f"x{BITCOIN}",
        f"{BITCOIN}x",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
        ETHEREUM.lower(),
        ETHEREUM[:-1] + "D",
        "0x" + "0123456789abcdef" * 4,
        "bc1",
        "1" * 30,
    ],
)
def test_what_does_not_check_is_no_wallet(text: str) -> None:
    check(only("wallet"), text, text)
