"""Which texts must be masked, and which must be left alone?

Every secret is put together here at run time, so that no scanner takes this file for a leak.
Each masked sample is (name, text, text as it may be shown).
"""

BODY = "aB3dE5gH7jK9mN2pQ4rS6tU8vW0xY1zC" * 40
HEX = "0123456789abcdef" * 8
EMAIL, SSN, CARD = "[REDACTED_EMAIL]", "[REDACTED_SSN]", "[REDACTED_CARD]"
IBAN, SECRET = "[REDACTED_IBAN]", "[REDACTED_SECRET]"
VISA = "4111 1111 1111 1111"


def key(prefix: str, size: int) -> str:
    """A key with `size` made-up characters after its prefix."""
    return prefix + BODY[:size]


def jwt(size: int) -> str:
    """A web token of about `size` characters."""
    return "ey" + "JhbGciOiJIUzI1NiJ9" + ".ey" + "J" + BODY[:20] * (size // 20) + "." + BODY[:43]


def pem(lines: int, label: str = "RSA PRIVATE KEY") -> str:
    """A private key of so many lines."""
    dashes = "-" * 5
    body = "".join(f"{BODY[:64]}\n" for _ in range(lines))
    return f"{dashes}BEGIN {label}{dashes}\n{body}{dashes}END {label}{dashes}"


DEMO = (
    "Sure! Here is the account owner: jane.doe@example.com. Their SSN is 123-45-6789 and the "
    f"card on file is {VISA}. The internal key is {key('sk-', 32)}. Anything else?"
)
DEMO_MASKED = (
    f"Sure! Here is the account owner: {EMAIL}. Their SSN is {SSN} and the "
    f"card on file is {CARD}. The internal key is {SECRET}. Anything else?"
)

_LONG_ADDRESS = "l" * 64 + "@" + ".".join(["d" * 60] * 3) + ".com"

MASKED: list[tuple[str, str, str]] = [
    ("demo", DEMO, DEMO_MASKED),
    ("email", "jane.doe@example.com", EMAIL),
    ("email_tag", "to j+tag_1@sub.mail.example.co.uk, please", f"to {EMAIL}, please"),
    ("email_dot", "Ask jane@example.com.", f"Ask {EMAIL}."),
    ("email_link", "[write](mailto:jane@example.com)", f"[write](mailto:{EMAIL})"),
    ("email_case", "Write to jane.doe+x@mail.example.co.uk today", f"Write to {EMAIL} today"),
    ("email_percent", "x?to=jane%40example.com&y", f"x?to={EMAIL}&y"),
    ("email_two", "a@b.co,c@d.co", f"{EMAIL},{EMAIL}"),
    ("email_name", "O'Brien <o'brien@example.com>", f"O'Brien <{EMAIL}>"),
    ("email_quoted", "mail='jane@example.com'", f"mail='{EMAIL}'"),
    ("email_long", f"x {_LONG_ADDRESS} y", f"x {EMAIL} y"),
    ("email_longer_local", "k" * 80 + "@example.com", "k" * 16 + EMAIL),
    ("email_punycode", "jane@xn--mller-kva.xn--p1ai ok", f"{EMAIL} ok"),
    ("email_accent", "an jos\u00e9@example.com.", f"an {EMAIL}."),
    ("email_accent_only", "<\u00f8@example.com>", f"<{EMAIL}>"),
    ("email_accent_first", "\u00c9lodie.b\u00e9@example.com", EMAIL),
    ("email_umlaut_domain", "Post an j\u00fcrgen@m\u00fcller.de, ja", f"Post an {EMAIL}, ja"),
    ("email_accent_domain", "jane@caf\u00e9.example.com", EMAIL),
    ("email_accent_top", "jane@example.verm\u00f6gen \u00e9", f"{EMAIL} \u00e9"),
    ("email_accent_two", "jose\u0301@example.com,a\u0301@b.co", f"{EMAIL},{EMAIL}"),
    ("email_vietnamese", "nguy\u1ec5n%40example.com", EMAIL),
    ("email_after_script", "\u90ae\u7bb1jos\u00e9@example.com", f"\u90ae\u7bb1{EMAIL}"),
    ("email_accent_long", "\u00e9" * 80 + "@example.com", "\u00e9" * 16 + EMAIL),
    ("card_accent", f"n\u00b0\u00e9{VISA}\u00e9", f"n\u00b0\u00e9{CARD}\u00e9"),
    ("ssn", "ssn 536-90-4399, ok", f"ssn {SSN}, ok"),
    ("ssn_spaces", "no 536 90 4399 ok", f"no {SSN} ok"),
    ("ssn_specimen", "078-05-1120", SSN),
    ("ssn_cue", "social security number is 536904399", f"social security number is {SSN}"),
    ("ssn_beside_years", "123-45-6789 2024", f"{SSN} 2024"),
    ("card", f"pay {VISA} now", f"pay {CARD} now"),
    ("card_dashes", "4111-1111-1111-1111", CARD),
    ("card_dots", "4111.1111.1111.1111.", f"{CARD}."),
    ("card_amex", "3782 822463 10005", CARD),
    ("card_13", "4222222222222", CARD),
    ("card_19", "6011 0000 0000 0000 001", CARD),
    ("card_2_series", "2221 0000 0000 0009", CARD),
    ("card_line_end", "4111 1111\n1111 1111", CARD),
    ("card_cvv", f"{VISA} 123", f"{CARD} 123"),
    ("card_expiry", f"{VISA} exp 12/26", f"{CARD} exp 12/26"),
    ("card_spelled", "no 4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 ok", f"no {CARD} ok"),
    ("card_chinese", "\u5361\u53f74111111111111111\u3002", f"\u5361\u53f7{CARD}\u3002"),
    ("card_two", f"{VISA}, {VISA}", f"{CARD}, {CARD}"),
    ("card_in_id", "id_4111111111111111", f"id_{CARD}"),
    ("iban", "GB82 WEST 1234 5698 7654 32 ok", f"{IBAN} ok"),
    ("iban_compact", "(DE89370400440532013000)", f"({IBAN})"),
    ("iban_lower", "gb82 west 1234 5698 7654 32", IBAN),
    ("iban_letters", "MT84 MALT 0110 0001 2345 MTLC AST0 01S.", f"{IBAN}."),
    ("iban_hyphens", "DE89-3704-0044-0532-0130-00", IBAN),
    ("key_20", f"key {key('sk-', 20)}", f"key {SECRET}"),
    ("key_not_ssn", "sk-" + "abcdef0123456789012345678", SECRET),
    ("key_p3_43", "sk-" + "abcdef0123456789abcd", SECRET),
    ("key_project", f"a {key('sk-proj-', 156)} b", f"a {SECRET} b"),
    ("key_anthropic", f"{key('sk-ant-' + 'api03-', 93)}AA.", f"{SECRET}."),
    ("key_router", "sk-or-v1-" + HEX[:64], SECRET),
    ("key_aws", "AK" + "IAIOSFODNN7EXAMPLE;", f"{SECRET};"),
    ("key_github", f"({key('gh' + 'p_', 36)})", f"({SECRET})"),
    ("key_github_fine", "github_pat_" + BODY[:22] + "_" + BODY[:59], SECRET),
    ("key_slack", "xox" + "b-123456789012-1234567890123-" + BODY[:24], SECRET),
    ("key_google", key("AI" + "zaSy", 33), SECRET),
    ("key_stripe", key("sk_" + "live_", 24), SECRET),
    ("key_npm", key("npm" + "_", 36), SECRET),
    ("key_pypi", key("py" + "pi-AgEIcHlwaS5vcmc", 120), SECRET),
    ("key_huggingface", key("h" + "f_", 34), SECRET),
    ("key_gitlab", key("gl" + "pat-", 20), SECRET),
    ("key_sendgrid", "S" + "G." + BODY[:22] + "." + BODY[:43], SECRET),
    ("key_groq", key("gs" + "k_", 52), SECRET),
    ("key_xai", key("xa" + "i-", 80), SECRET),
    ("key_perplexity", key("pp" + "lx-", 48), SECRET),
    ("key_replicate", key("r" + "8_", 37), SECRET),
    ("key_digitalocean", "do" + "p_v1_" + HEX[:64], SECRET),
    ("key_shopify", "shp" + "at_" + HEX[:32], SECRET),
    ("key_databricks", "da" + "pi" + HEX[:32], SECRET),
    ("key_vault", key("hv" + "s.", 90), SECRET),
    ("key_doppler", key("dp" + ".pt.", 43), SECRET),
    ("key_linear", key("lin" + "_api_", 40), SECRET),
    ("jwt", f"token is {jwt(100)}. ok", f"token is {SECRET}. ok"),
    ("jwt_700", jwt(700), SECRET),
    ("jwt_again", "ZX" + "lK" + BODY[:230], SECRET),
    ("pem", f"{pem(3)}\nafter", f"{SECRET}\nafter"),
    ("pem_pkcs8", f"a\n{pem(30, 'PRIVATE KEY')} b", f"a\n{SECRET} b"),
    ("pem_one_line", pem(3, "EC PRIVATE KEY").replace("\n", "\\n"), SECRET),
    ("pem_pgp", pem(2, "PGP PRIVATE KEY BLOCK"), SECRET),
    ("url", "https://jane:pw@example.com/x", f"https://{SECRET}@example.com/x"),
    ("url_redis", "redis://:p!w(1)@cache:6379/0", f"redis://{SECRET}@cache:6379/0"),
    ("url_at", "postgres://u:p@ss@db/x", f"postgres://{SECRET}@db/x"),
    ("password", "password: hunter2!x", f"password: {SECRET}"),
    ("password_equals", "DB_PASSWORD=s3cr3t-Value;", f"DB_PASSWORD={SECRET};"),
    ("password_json", '{"password": "hunter2!x", "n": 1}', f'{{"password": "{SECRET}", "n": 1}}'),
    ("password_words", "pwd = 'correct horse 7 staple'", f"pwd = '{SECRET}'"),
    ("password_query", "?api_key=abcd1234efgh&page=2", f"?api_key={SECRET}&page=2"),
    ("token", "Token: a1b2c3d4e5f6", f"Token: {SECRET}"),
    (
        "aws_secret",
        "aws_secret_access_key = " + BODY[:36] + "/+9=",
        f"aws_secret_access_key = {SECRET}",
    ),
    (
        "azure",
        "AccountName=x;AccountKey=" + BODY[:84] + "==;E=y",
        f"AccountName=x;AccountKey={SECRET};E=y",
    ),
    ("bearer", "Authorization: Bearer x", f"Authorization: Bearer {SECRET}"),
    ("basic", "authorization: Basic dXNlcjpwYXNz\r\n", f"authorization: Basic {SECRET}\r\n"),
    ("bearer_json", '"Authorization": "Bearer abc"', f'"Authorization": "Bearer {SECRET}"'),
    ("typed_in_keyword", "password: jane@example.com", f"password: {EMAIL}"),
    ("fullwidth_at", "jane\uff20example.com", EMAIL),
    ("zero_width", "a jane@\u200bexa\u200bmple.com b", f"a {EMAIL} b"),
    ("no_break", "4111\u00a01111\u20111111\u00ad-1111", CARD),
    ("narrow_space", "4111\u202f1111\u202f1111\u202f1111", CARD),
    (
        "fullwidth_digits",
        VISA.translate({ord("0") + i: 0xFF10 + i for i in range(10)}),
        CARD,
    ),
    (
        "arabic_digits",
        VISA.translate({ord("0") + i: 0x660 + i for i in range(10)}),
        CARD,
    ),
    ("ssn_no_break", "d 123\u201145\u20116789", f"d {SSN}"),
    ("invisible_around", "\u200bjane@example.com\u200b!", f"\u200b{EMAIL}\u200b!"),
    (
        "bold_letters",
        "\U0001d423\U0001d41a\U0001d427\U0001d41e@\U0001d41e\U0001d431\U0001d41a\U0001d426\U0001d429\U0001d425\U0001d41e.\U0001d41c\U0001d428\U0001d426",
        EMAIL,
    ),
]

KEPT: list[str] = [
    "The quick brown fox jumps over the lazy dog near 4 tall trees.",
    "id 3f2504e0-4f89-41d3-9a0c-630433107186 at 1764500000005 order 4000123412341235 rev "
    "9fceb02d0ae598e95dc970b74767f19372d61af8 ip 10.0.0.12 v1.2.3 tel-ext 123-45-678 "
    "sku 900-12-3456 price 1,234,567.89",
    "000-12-3456 666-12-3456 912-12-3456 123-00-6789 123-45-0000",
    "123-45-67890 1123-45-6789 2021-123-45-6789 123-45-6789-1 536904399",
    "Order 1234567890123456 #4111111111111112 1234 5678 9012 3456",
    "41111111111111111111111 0.4111111111111111 4111111111111111.5",
    "3.14159265358979323846 40111111-1111-4111-8111-111111111111",
    "a4111111111111111 4111111111111111b " + HEX[:64],
    "123.45.6789 123-45.6789",
    "100-200-3000 2026-11-30T16:25:00Z 978-3-16-148410-0 0.1 0.2 0.3 12:30 $1,234.56",
    "GB82 WEST 1234 5698 7654 33 DE00370400440532013000 GB82 jane XX12 3456 7890",
    "sk-learn task-runner desk-top eyJust ghp_short sk-abcdef012345678 sk-"
    + "learn-extension-pack",
    "AKIA risk-free whisky_ npm_config_cache pypi-server hf_hub_download glpat- SG.x.y dapi1",
    "git@github.com:org/repo.git @jane_doe @dataclass @types/node@20.1.0 jane@localhost a@b",
    "react@18.2.0-canary.abc user@10.0.0.1 10.1000/182 std::vector::x jane @ example.com",
    "http://localhost:8080/a https://git@host/x docker://alpine:latest a://b:c http://[::1]:80/",
    "password: required, token: str, secret=None, api_key = os.environ['KEY'], pwd: $PWD",
    'password="<your password>" token: YOUR_TOKEN_123 secret: ${SECRET_1} passwd: ********',
    "max_tokens: 100 next_page_token: abcd1234efgh tokens=12345678 monkey: banana12",
    "Authorization: required for all. Authorization: Bearer <token>",
    "-----BEGIN CERTIFICATE-----\n" + BODY[:64] + "\n-----END CERTIFICATE-----",
    f"{EMAIL} {SSN} {CARD} {IBAN} {SECRET} password: {SECRET} https://{SECRET}@h/",
    "caf\u00e9 cr\u00e8me \u00e0 la fran\u00e7aise, \u00e9t\u00e9; "
    "jos\u00e9@localhost \u00e9@b 5\u00d7@a.co",
    "\u0e08\u0e2d\u0e19@example.com \u4f60@example.com",
    "\u201cCurly\u201d \u2014 dash \u2026 Gr\u00fc\u00dfe \u4f60\u597d ok",
    "\U0001f469\u200d\U0001f680 ok",
    "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12",
]
