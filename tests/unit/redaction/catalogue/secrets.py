"""Which secrets are in the catalogue? Entries 46 to 68, put together at run time."""

from tests.unit.redaction.catalogue.entries import SECRET, Row, keep, mask
from tests.unit.redaction.samples import BODY, HEX, jwt, key, pem

_OPENAI = "T3Blbk" + "FJ"
_GITHUB_BODY = "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ"
_GITHUB = _GITHUB_BODY + "0mLq17"


def _whole(entry: int, *secrets: str) -> list[Row]:
    """Rows in which the secret is all, and in which it stands in a sentence."""
    rows = [mask(entry, secret, SECRET) for secret in secrets]
    return rows + [
        mask(entry, f"key ({secret}), ok.", f"key ({SECRET}), ok.") for secret in secrets
    ]


SECRETS = [
    *_whole(
        46,
        "sk-" + BODY[:20] + _OPENAI + BODY[20:40],
        "sk-" + "proj-" + BODY[:58] + _OPENAI + BODY[58:116],
        "sk-" + "proj-" + BODY[:74] + _OPENAI + BODY[74:148],
        "sk-" + "svcacct-" + BODY[:74] + _OPENAI + BODY[74:148],
        "sk-" + "admin-" + BODY[:58] + _OPENAI + BODY[58:116],
    ),
    *_whole(47, key("sk-" + "ant-api03-", 93) + "AA", key("sk-" + "ant-admin01-", 93) + "AA"),
    *_whole(
        48,
        *(
            prefix + "2345ABCDWXYZ7QRS"
            for prefix in ("AK" + "IA", "AS" + "IA", "AB" + "IA", "AC" + "CA")
        ),
    ),
    *_whole(48, "AK" + "IAIOSFODNN7EXAMPLE"),
    mask(49, "aws_secret_access_key = " + BODY[:36] + "/+9=", f"aws_secret_access_key = {SECRET}"),
    mask(
        49,
        "AWS Secret Access Key [None]: " + BODY[:38] + "/+",
        f"AWS Secret Access Key [None]: {SECRET}",
    ),
    mask(49, '"SecretAccessKey": "' + BODY[:38] + '/+"', f'"SecretAccessKey": "{SECRET}"'),
    *keep(49, BODY[:40], "sha1 " + HEX[:40]),
    *_whole(50, *("gh" + letter + "_" + _GITHUB for letter in "pousr")),
    *_whole(50, "github_" + "pat_" + BODY[:22] + "_" + BODY[:59]),
    *_whole(
        51,
        "xo" + "xb-123456789012-1234567890123-" + BODY[:24],
        *("xo" + f"x{letter}-12345678901-" + BODY[:24] for letter in "aeoprs"),
        "xa" + "pp-1-A012345-1234567-" + HEX[:32],
    ),
    *_whole(52, key("AI" + "zaSy", 33), "ya" + "29." + BODY[:60], key("GOC" + "SPX-", 28)),
    *_whole(
        53,
        *(
            f"{kind}_{mode}_" + BODY[:24]
            for kind in ("sk", "rk")
            for mode in ("live", "test", "prod")
        ),
        key("wh" + "sec_", 32),
    ),
    *_whole(54, key("np" + "m_", 36), "np" + "m_" + _GITHUB),
    *_whole(55, key("py" + "pi-AgEIcHlwaS5vcmc", 120)),
    *_whole(56, key("h" + "f_", 34)),
    *_whole(57, key("gl" + "pat-", 20), key("gl" + "pat-", 27) + ".01.0123abcde"),
    *_whole(58, "S" + "G." + BODY[:22] + "." + BODY[:43]),
    *_whole(59, "123456789:A" + BODY[:34], "1234567890:A" + BODY[3:37]),
    *_whole(
        60,
        key("gs" + "k_", 52),
        key("xa" + "i-", 80),
        "sk-" + "or-v1-" + HEX[:64],
        key("pp" + "lx-", 48),
        key("r" + "8_", 37),
    ),
    *_whole(
        61,
        "do" + "p_v1_" + HEX[:64],
        "shp" + "at_" + HEX[:32],
        "da" + "pi" + HEX[:32],
        key("hv" + "s.", 90),
        key("dp" + ".pt.", 43),
        key("lin" + "_api_", 40),
    ),
    mask(61, "twilio key SK" + HEX[:32], f"twilio key {SECRET}"),
    mask(62, f"token is {jwt(100)}. ok", f"token is {SECRET}. ok"),
    mask(62, "ey" + "J" + BODY[:40] + ".." + BODY[:16] + "." + BODY[:60] + "." + BODY[:22], SECRET),
    mask(62, "ZX" + "lK" + BODY[:230], SECRET),
    *(
        mask(63, f"a\n{pem(3, label)}\nb", f"a\n{SECRET}\nb")
        for label in (
            "RSA PRIVATE KEY",
            "PRIVATE KEY",
            "ENCRYPTED PRIVATE KEY",
            "EC PRIVATE KEY",
            "OPENSSH PRIVATE KEY",
            "PGP PRIVATE KEY BLOCK",
        )
    ),
    mask(63, pem(3, "PRIVATE KEY").replace("\n", "\\n"), SECRET),
    mask(
        64,
        "AccountName=x;AccountKey=" + BODY[:86] + "==;E=y",
        f"AccountName=x;AccountKey={SECRET};E=y",
    ),
    mask(
        64, "?sv=2022&se=1&sig=" + BODY[:40] + "%2Fab%3D&sp=r", f"?sv=2022&se=1&sig={SECRET}&sp=r"
    ),
    mask(
        64,
        "SharedAccessSignature=sv=2022&sig=" + BODY[:43] + "=",
        f"SharedAccessSignature=sv=2022&sig={SECRET}",
    ),
    mask(65, "postgres://app:s3cret@db:5432/x", f"postgres://{SECRET}@db:5432/x"),
    mask(65, "redis://:p!w(1)@cache:6379/0", f"redis://{SECRET}@cache:6379/0"),
    mask(66, "Authorization: Bearer x", f"Authorization: Bearer {SECRET}"),
    mask(66, "authorization: Basic dXNlcjpwYXNz\r\n", f"authorization: Basic {SECRET}\r\n"),
    mask(67, "password: hunter2!x", f"password: {SECRET}"),
    mask(67, "**Password:** `hunter2!x`", f"**Password:** `{SECRET}`"),
    *_whole(68, "sk-" + "abcdef0123456789012345678"),
]
