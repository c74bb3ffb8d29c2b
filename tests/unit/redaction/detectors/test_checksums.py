import pytest

from tidegate.redaction import checksums
from tidegate.redaction.detectors import national_checks, wallet_checks

VALID = {
    # The specimen of GitHub's announcement, put together here.
    "base62_crc32": ["gh" + "p_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"],
    "ean13": ["9783161484100", "7569217076985", "4006381333931"],
    "iban": ["GB82WEST12345698765432", "DE89370400440532013000", "NO9386011117947"],
    "luhn": ["4111111111111111", "79927398713", "0"],
    "mod11_10": ["86095742719", "36574261809"],
    "mod97": ["3214282912345698765432161182"],
    "nhs": ["9434765919", "4010232137"],
    "verhoeff": ["2363", "499118665246", "234123412346"],
}


def altered(value: str) -> list[str]:
    """`value` with every single character replaced by the next one of its class."""
    following = {"9": "0", "Z": "A", "z": "a"}
    return [
        value[:place] + following.get(char, chr(ord(char) + 1)) + value[place + 1 :]
        for place, char in enumerate(value)
        if char.isalnum()
    ]


def test_the_table_names_every_check_that_is_tested() -> None:
    assert set(VALID) == set(checksums.CHECKS)


@pytest.mark.parametrize("name", VALID)
def test_a_known_number_checks_and_no_single_wrong_digit_does(name: str) -> None:
    check = checksums.CHECKS[name]
    for value in VALID[name]:
        assert check(value), value
        changed = altered(value[-36:]) if name == "base62_crc32" else altered(value)
        assert [wrong for wrong in changed if check(wrong)] == []


@pytest.mark.parametrize("check", checksums.CHECKS.values(), ids=checksums.CHECKS)
@pytest.mark.parametrize("junk", ["", "x", "-", "4111-1111", "\u0661\u0662\u0663", "\u00b2" * 13])
def test_a_check_answers_false_for_what_it_cannot_read(check, junk: str) -> None:  # type: ignore[no-untyped-def]
    assert check(junk) is False


NATIONAL = {
    "br_cpf": "11144477735 52998224725",
    "es_dni": "12345678Z X1234567L 54362315K X5253868R",
    "fr_nir": "295109912611193 253072B07300470 253072A07300443",
    "it_codice_fiscale": "RSSMRA85T10A562S RSSMRA80A01H501U RCCMNL83S18D969H",
    "nl_bsn": "111222333 123456782",
    "in_aadhaar": "234123412346 499118665246",
    "pl_pesel": "44051401458 44051401359 02070803628",
    "be_national": "85073003328",
    "at_svnr": "1237010180",
    "pt_nif": "123456789 501964843",
    "se_personnummer": "8112189876 6408233234 198112189876",
    "fi_hetu": "131052-308T",
    "no_fodselsnummer": "15108695088",
    "ie_pps": "6433435F 6433435OA 1234567T",
    "ro_cnp": "1630615123457 1800101221144",
    "bg_egn": "7523169263 8032056031 7542011030",
    "cz_rodne_cislo": "7103192745",
    "tr_kimlik": "17291716060",
    "cn_resident": "11010519491231002X 360426199101010071",
    "kr_rrn": "9710139019902",
    "jp_my_number": "123456789018",
    "sg_nric": "S1234567D T1234567J F1234567N G1234567X M1234567K",
    "tw_national": "A123456789",
    "au_tfn": "123456782",
    "ca_sin": "130692544",
    "mx_curp": "BOXW310820HNERXN09",
    "ar_cuit": "20055361682",
    "cl_rut": "760864285 125319092 76086428K",
    "za_id": "8001015009087 7503305044089",
    "il_id": "039337423",
}


@pytest.mark.parametrize("name", NATIONAL)
def test_a_published_specimen_of_each_country_checks(name: str) -> None:
    check = getattr(national_checks, name)
    for value in NATIONAL[name].split():
        fits = name != "cl_rut" or value != "76086428K"
        assert check(value) is fits, value


# A check of one digit modulo 10 or 11 lets a changed month through when the date stays possible.
@pytest.mark.parametrize("name", NATIONAL)
def test_a_wrong_last_character_never_checks(name: str) -> None:
    check = getattr(national_checks, name)
    for value in NATIONAL[name].split():
        if not check(value) or name == "ie_pps":
            continue
        last = value[-1]
        digits = last.isdigit() or name == "cn_resident"
        for other in "0123456789" if digits else "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
            if other != last:
                assert not check(value[:-1] + other), (value, other)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("br_cpf", "11111111111"),
        ("in_aadhaar", "034123412346"),
        ("nl_bsn", "001112223"),
        ("pl_pesel", "44053201459"),
        ("za_id", "8013015009084"),
        ("il_id", "000000000"),
        ("cn_resident", "110105194913310025"),
        ("us_itin", "123701234"),
        ("us_itin", "912892654"),
        ("us_itin", "912932654"),
        ("us_itin", "912492654"),
        ("gb_nino", "GB123456C"),
        ("gb_nino", "AO123456C"),
        ("dk_cpr", "3213991234"),
        ("de_tax_shape", "12345678901"),
        ("ch_ahv_prefix", "7579217076985"),
    ],
)
def test_what_an_office_never_issues_fails(name: str, value: str) -> None:
    assert not getattr(national_checks, name)(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("us_itin", "912902654"),
        ("us_itin", "900700000"),
        ("gb_nino", "AB123456C"),
        ("dk_cpr", "0101901234"),
        ("de_tax_shape", "36574261809"),
        ("ch_ahv_prefix", "7569217076985"),
    ],
)
def test_numbers_without_a_check_digit_fit_their_form(name: str, value: str) -> None:
    assert getattr(national_checks, name)(value)


def test_a_hash_of_the_submission_of_keccak() -> None:
    empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert wallet_checks.keccak256(b"").hex() == empty
    # One block is 136 bytes: the padding of a full block is a block of its own.
    assert wallet_checks.keccak256(b"a" * 136) != wallet_checks.keccak256(b"a" * 135)


WALLETS = [
    ("base58check", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
    ("base58check", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"),
    ("bech32", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
    ("bech32", "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4"),
    ("bech32", "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"),
    ("eip55", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
    ("eip55", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"),
]


@pytest.mark.parametrize(("name", "address"), WALLETS)
def test_a_wallet_address_checks_and_a_changed_one_does_not(name: str, address: str) -> None:
    check = getattr(wallet_checks, name)
    assert check(address)
    wrong = {"1": "2", "2": "1"}
    for place in range(4, len(address)):
        other = wrong.get(address[place], "2")
        assert not check(address[:place] + other + address[place + 1 :])


@pytest.mark.parametrize(
    ("name", "junk"),
    [
        ("base58check", ""),
        ("base58check", "0OIl"),
        ("base58check", "1111"),
        ("bech32", "bc1"),
        ("bech32", "qqqqqq"),
        ("bech32", "1qqqqqq"),
        ("bech32", "bc1bbbbbbbbbbb"),
        ("bech32", "bc1qW508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
    ],
)
def test_what_is_no_address_never_checks(name: str, junk: str) -> None:
    assert not getattr(wallet_checks, name)(junk)
