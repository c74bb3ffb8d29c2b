"""What must be masked, what must be kept? Entries 1 to 107 of the catalogue.

An entry may have several rows. `shown` is the whole text as a reader may see it: for a row of the
kind "keep" it is the text itself. `families` are the detectors that the entry names beyond those
of the preset `default`.
"""

from dataclasses import dataclass

from tests.unit.redaction.samples import HEX

EMAIL, SSN, CARD, IBAN = (f"[REDACTED_{word}]" for word in ("EMAIL", "SSN", "CARD", "IBAN"))
SECRET, PHONE, IP, MAC = (f"[REDACTED_{word}]" for word in ("SECRET", "PHONE", "IP", "MAC"))
ID, PASSPORT, WALLET = (f"[REDACTED_{word}]" for word in ("NATIONAL_ID", "PASSPORT", "WALLET"))
BY_POLICY = {27, 98, 106}
"""Entries that a policy decides: the strict preset may mask them."""


@dataclass(frozen=True)
class Row:
    """One text of one entry."""

    entry: int
    text: str
    shown: str
    families: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Nothing in it may be changed."""
        return self.text == self.shown


def mask(entry: int, text: str, shown: str, *families: str) -> Row:
    """A row whose value must not be shown."""
    return Row(entry, text, shown, families)


def keep(entry: int, *texts: str) -> list[Row]:
    """Rows that must stay as they are."""
    return [Row(entry, text, text) for text in texts]


_DIGITS_WIDE = {ord("0") + i: 0xFF10 + i for i in range(10)}
_DIGITS_ARABIC = {ord("0") + i: 0x660 + i for i in range(10)}
VISA = "4111 1111 1111 1111"
_LONG = "l" * 60 + "@" + "d" * 58 + "." + "e" * 57 + ".com"

EMAILS = [
    mask(1, "jane.doe@example.com", EMAIL),
    mask(2, "j+tag_1@sub.mail.example.co.uk,", f"{EMAIL},"),
    mask(3, "jane@example.com.", f"{EMAIL}."),
    mask(4, "[write](mailto:jane@example.com)", f"[write](mailto:{EMAIL})"),
    mask(5, "https://jane:pw@example.com/x", f"https://{SECRET}@example.com/x"),
    mask(6, '"jane doe"@example.com', EMAIL, "email_quoted"),
    mask(6, 'to <"jane.(doe)\\"x"@example.com>', f"to <{EMAIL}>", "email_quoted"),
    mask(7, "j\u00fcrgen@m\u00fcller.de", EMAIL),
    mask(8, "\u7528\u6237@\u4f8b\u5b50.\u5e7f\u544a", EMAIL, "email_international"),
    mask(
        8,
        "\u0438\u0432\u0430\u043d@\u043f\u043e\u0447\u0442\u0430.\u0440\u0444, \u0434\u0430",
        f"{EMAIL}, \u0434\u0430",
        "email_international",
    ),
    mask(9, "jane dot doe at example dot com", EMAIL, "email_obfuscated"),
    mask(10, "jane [at] example [dot] com", EMAIL, "email_obfuscated"),
    mask(
        10,
        "jane(at)example.com, jane AT example DOT org.",
        f"{EMAIL}, {EMAIL}.",
        "email_obfuscated",
    ),
    mask(11, "jane%40example.com", EMAIL),
    mask(12, "jane\uff20example.com", EMAIL),
    mask(13, "a jane@\u200bexa\u200bmple.com b", f"a {EMAIL} b"),
    mask(14, f"to {_LONG} now", f"to {EMAIL} now"),
    mask(15, '{"to":"jane\\u0040example.com"}', f'{{"to":"{EMAIL}"}}'),
    mask(16, "jane&#64;example.com", EMAIL),
    mask(16, "jane&commat;example.com jane&#x40;example.com", f"{EMAIL} {EMAIL}"),
    mask(17, "a@b.co,c@d.co", f"{EMAIL},{EMAIL}"),
]

SSNS = [
    mask(18, "536-90-4399", SSN),
    mask(19, "no 536 90 4399 ok", f"no {SSN} ok"),
    mask(20, "social security number is 536904399", f"social security number is {SSN}"),
    mask(20, "SSN: 536904399.", f"SSN: {SSN}."),
    mask(20, "SSN 536.90.4399.", f"SSN {SSN}."),
    *keep(21, "536.90.4399", "SSN 536.90-4399 or 536.90.4399.1"),
    *keep(21, "536904399", "part 536904399 of the set"),
    mask(22, "536\u201190\u20114399", SSN),
    *keep(23, "000-12-3456"),
    *keep(24, "666-12-3456"),
    *keep(25, "912-12-3456", "900-12-3456", "123-00-6789", "123-45-0000"),
    *keep(26, "123-45-67890", "1123-45-6789", "2021-123-45-6789", "123-45-6789-1"),
    mask(27, "078-05-1120 219-09-9999", f"{SSN} {SSN}"),
]

CARDS = [
    mask(28, VISA, CARD),
    mask(29, "4111-1111-1111-1111", CARD),
    mask(30, "4111.1111.1111.1111", CARD),
    mask(31, "4111\u00a01111\u202f1111\u00a01111", CARD),
    mask(32, "3782 822463 10005", CARD),
    mask(33, "4222222222222", CARD),
    mask(34, "6011 0000 0000 0000 001", CARD),
    mask(35, "2221 0000 0000 0009", CARD),
    mask(36, VISA.translate(_DIGITS_WIDE), CARD),
    mask(37, "4111\u200b 1111\u200b 1111 \u200b1111", CARD),
    mask(38, VISA.translate(_DIGITS_ARABIC), CARD),
    mask(39, "4111 1111\n1111 1111", CARD),
    mask(40, f"pay with {VISA} exp 12/26, please", f"pay with {CARD} exp 12/26, please"),
    *keep(41, "4111 1111 1111 1112", "4111111111111112"),
    *keep(42, "7000000000000005", "1234567890123452", "9999 9999 9999 9995"),
    *keep(43, "9400111899223197428490", "9205 5901 6491 7312 0019 12"),
    *keep(44, "3.14159265358979323846", "0.4111111111111111"),
    mask(45, '{"card":4111111111111111}', f'{{"card":{CARD}}}'),
]

OTHERS = [
    mask(69, "ring +44 20 7946 0958 now", f"ring {PHONE} now", "phone"),
    mask(70, "(415) 555-2671", PHONE, "phone"),
    mask(70, "(415) 555-2671 ext. 123", PHONE, "phone"),
    mask(71, "+14155552671", PHONE, "phone"),
    mask(71, "tel:+4915123456789;", f"tel:{PHONE};", "phone"),
    mask(72, "GB82 WEST 1234 5698 7654 32", IBAN),
    mask(72, "GB82WEST12345698765432", IBAN),
    mask(72, "gb82 west 1234 5698 7654 32", IBAN),
    mask(73, "from 93.184.216.34:443", f"from {IP}:443", "ip"),
    mask(74, "2001:db8::1", IP, "ip"),
    mask(74, "[2a00:1450:4001:81b::200e]:80", f"[{IP}]:80", "ip"),
    mask(75, "00:1A:2B:3C:4D:5E", MAC, "mac"),
    mask(75, "00-1a-2b-3c-4d-5e 001a.2b3c.4d5e", f"{MAC} {MAC}", "mac"),
    mask(76, "passport number: X1234567", f"passport number: {PASSPORT}", "passport"),
    mask(76, "Reisepass C01X00T47.", f"Reisepass {PASSPORT}.", "passport"),
    mask(77, "943 476 5919", ID, "national_id"),
    mask(77, "NHS number 9434765919", f"NHS number {ID}", "national_id"),
    mask(78, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", WALLET, "wallet"),
    mask(78, "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa.", f"{WALLET}.", "wallet"),
    mask(78, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", WALLET, "wallet"),
    mask(79, "BSN 111222333", f"BSN {ID}", "national_id"),
    mask(79, "DNI 12345678Z", f"DNI {ID}", "national_id"),
    mask(79, "NIR 2 95 10 99 126 111 93", f"NIR {ID}", "national_id"),
    mask(79, "RSSMRA85T10A562S", ID, "national_id"),
    mask(79, "111.444.777-35", ID, "national_id"),
    mask(79, "2341 2341 2346", ID, "national_id"),
    mask(79, "PESEL: 44051401458", f"PESEL: {ID}", "national_id"),
]

KEPT = [
    *keep(80, "Order 1234567890123456"),
    *keep(81, "#4111111111111112"),
    *keep(82, "3f2504e0-4f89-41d3-9a0c-630433107186", "40111111-1111-4111-8111-111111111111"),
    *keep(83, "9fceb02d0ae598e95dc970b74767f19372d61af8", "commit 4111111"),
    *keep(84, HEX[:64], "sha256:" + HEX[:64]),
    *keep(85, "2026-11-30T16:25:00Z", "2026-11-30T16:25:00.123456+02:00"),
    *keep(86, "1764500000005", "at 1701234567890"),
    *keep(87, "978-3-16-148410-0", "9783161484100"),
    *keep(88, "v1.2.3.4", "Chrome/120.0.6099.109", "Chrome/120.0.0.0", "version 10.0.19045.1"),
    *keep(89, "1Z999AA10123456784"),
    *keep(90, "100-200-3000"),
    *keep(91, "$1,234.56", "1 299,00 EUR", "USD 1234567.89"),
    *keep(92, "2026-11-30", "30.11.2026", "11/30/2026", "30-11-2026", "05-06-2024"),
    *keep(93, "12:30:45", "09:05", "23:59:59.999"),
    *keep(94, "@jane_doe", "thanks @jane_doe!"),
    *keep(95, "@dataclass", "@app.route('/x')"),
    *keep(96, "@types/node@20.1.0", "react@18.2.0-canary.1"),
    *keep(97, "git@github.com:org/repo.git"),
    *keep(98, "127.0.0.1", "0.0.0.0:8080", "10.0.0.12", "192.168.1.1/24", "http://[::1]:80"),
    *keep(99, "sk-learn", "task-runner", "sk-learn-contrib-extras-package"),
    *keep(100, "eyJust", "ghp_short"),
    *keep(101, "48.8566, 2.3522", "40.712776,-74.005974", "lat 51.5007292 lon -0.1246254"),
    *keep(102, "0.1 0.2 0.3", "0.10 0.20 0.30 0.40"),
    *keep(103, "std::vector::x", "a::b", "x[::1]", "Foo::Bar::new()"),
    *keep(104, "12345-6789", "02139-4307"),
    *keep(105, "10.1000/182", "doi:10.1109/5.771073"),
    mask(106, "jane@example.com", EMAIL),
    *keep(
        107, "[EMAIL_1]", "[REDACTED_EMAIL]", "password: [REDACTED_SECRET]", "[REDACTED_CARD_1111]"
    ),
]
