import re

import pytest

from tests.unit.redaction.detectors.finding import check, only
from tests.unit.redaction.samples import BODY, HEX, SECRET
from tidegate.redaction.detectors.key_formats import ANCHORS, FORMATS
from tidegate.redaction.detectors.keys import checks

CAPITALS = "ABCDEFGH23456789" * 8
KEYS = only("key")
# What stands for the parts of a format that are no fixed text.
PREFIXES = {
    "aws_access_key": "AK" + "IA",
    "atlassian_token": "AT" + "ATT3",
    "airtable_token": "pa" + "t" + BODY[:14] + ".",
    "digitalocean_token": "do" + "p_v1_",
    "discord_token": "M" + BODY[:23] + ".",
    "doppler_token": "dp" + ".st.",
    "github_token": "gh" + "s_",
    "gitlab_token": "gl" + "ptt-",
    "google_oauth": "ya" + "29.",
    "langsmith_key": "lsv2" + "_pt_",
    "mailgun_key": "ke" + "y-",
    "sendgrid_key": "S" + "G.",
    "sentry_token": "sntry" + "s_",
    "shippo_token": "shippo" + "_live_",
    "shopify_token": "shp" + "ss_",
    "slack_token": "xo" + "xp-",
    "square_token": "sq0" + "csp-",
    "stripe_key": "rk" + "_live_",
    "vault_token": "hv" + "b.",
}
BODIES = {
    "age_key": "1" + CAPITALS[:58],
    "anthropic_key": "ant-api03-" + BODY[:40],
    "atlassian_token": "x" + BODY[:60],
    "aws_access_key": CAPITALS[:16],
    "brevo_key": HEX[:64],
    "databricks_token": HEX[:32],
    "digitalocean_token": HEX[:64],
    "airtable_token": HEX[:64],
    "discord_token": BODY[:6] + "." + BODY[:30],
    "google_api_key": "aSy" + BODY[:33],
    "langsmith_key": HEX[:32] + "_" + HEX[:10],
    "mailgun_key": HEX[:32],
    "new_relic_key": CAPITALS[:27],
    "openai_key": "proj-" + BODY[:40],
    "openai_key_old": BODY[:20] + "T3Blbk" + "FJ" + BODY[:20],
    "openrouter_key": "or-v1-" + HEX[:64],
    "postman_key": HEX[:24] + "-" + HEX[:34],
    "pulumi_token": HEX[:40],
    "rubygems_key": HEX[:48],
    "sendgrid_key": BODY[:22] + "." + BODY[:43],
    "shippo_token": HEX[:40],
    "shopify_token": HEX[:32],
    "sk_vendor_key": "lf-" + BODY[:36],
    "slack_app": "1-A012345-1234567-" + HEX[:32],
    "supabase_token": HEX[:40],
    "tailscale_key": "auth-" + BODY[:30],
    "twilio_key": HEX[:32],
}
SAMPLES = {
    form.name: PREFIXES.get(form.name, form.prefix) + BODIES.get(form.name, BODY[:80])
    for form in FORMATS
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_key_of_every_format_is_found_in_text_and_in_every_split(name: str) -> None:
    sample = SAMPLES[name]
    check(KEYS, f"is {sample}, ok", f"is {SECRET}, ok")
    assert KEYS.redact(f"is {sample}, ok").spans[0].detector == name


@pytest.mark.parametrize("name", SAMPLES)
def test_the_prefilter_stops_at_every_format(name: str) -> None:
    first = "".join(chars for chars, _ in ANCHORS)
    rest = "|".join(f"(?<=[{chars}]){after}" for chars, after in ANCHORS)
    assert re.search(f"[{first}](?:{rest})", SAMPLES[name])


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn sk-toolkit-for-the-rest-of-us sk-abc123",
        "ghp_short gho_ github_pat_x npm_config_registry_url",
        "hf_hub_download hf_transfer_enabled_for_everything",
        "xoxb-1 xapp-1 pypi-server xai-model pplx-api",
        "AKIA1234 AKIAABCDEFGHIJKLMNOPQ ASIAN markets",
        "SK0123 SKIPPED sk_live_1 whsec_ r8_x",
        "SG.x.y hvs.short dp.pt.short ya29.x",
        "dapi0123 dapifeedbeef api0123456789abcdef0123456789abcdef",
        "AIzaShort AT3 ATATT3x",
        "key-value-store key-0123456789abcdef0123456789abcdef0",
        "AGE-SECRET-KEY-1ABC tskey-auth-x NRAK-short",
        "glpat- glpat-short sq0atp-short",
        "M" + BODY[:23] + "." + BODY[:5] + "." + BODY[:30],
    ],
)
def test_words_with_the_prefix_of_a_key_are_left_alone(text: str) -> None:
    check(KEYS, text, text)


def test_a_check_sum_is_told_and_decides_nothing() -> None:
    right = "gh" + "p_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"
    assert checks("github_token", right) is True
    assert checks("npm_token", "np" + "m_" + right[4:]) is True
    assert checks("github_token", right[:-1] + "8") is False
    assert checks("github_token", right + "8") is None
    assert checks("stripe_key", right) is None
    for token in (right, right[:-1] + "8", right[:30]):
        check(KEYS, token, SECRET)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("12345678:A" + BODY[:34], SECRET),
        ("//api.example/bot123456789:A" + BODY[:34] + "/x", f"//api.example/bot{SECRET}/x"),
        ("x123456789:A" + BODY[:34], None),
        ("bot 123456789:A" + BODY[:34] + "/getMe", f"bot {SECRET}/getMe"),
        ("1234567:A" + BODY[:34], None),
        ("12345678901:A" + BODY[:34], None),
        ("123456789:B" + BODY[:34], None),
        ("123456789:A" + BODY[:20], None),
        ("123456789:", None),
        ("123456789: A" + BODY[:34], None),
    ],
)
def test_tokens_of_bots(text: str, shown: str | None) -> None:
    check(KEYS, text, text if shown is None else shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("?sig=" + BODY[:43] + "=&x", f"?sig={SECRET}&x"),
        ("&sig=" + BODY[:40] + "%2B%2Fa%3D", f"&sig={SECRET}"),
        ("?X-Amz-Signature=" + HEX[:64] + " ok", f"?X-Amz-Signature={SECRET} ok"),
        ("&x-goog-signature=" + HEX * 4, f"&x-goog-signature={SECRET}"),
        ("sig=" + BODY[:43] + "=", None),
        ("?sig=short", None),
        ("?sig=", None),
        ("?sign=" + BODY[:43], None),
    ],
)
def test_signatures_of_urls(text: str, shown: str | None) -> None:
    check(KEYS, text, text if shown is None else shown)
