"""Which access keys does their issuer mark, and with what?

Lives here: the table of prefixes, each with the characters and the least length of what follows.
Does not live here: the search (keys). Sources: the issuers' own documentation and announcements of
token formats. Where an issuer states a length the pattern asks for less, because a key that was
cut short in an answer still gives most of itself away.
"""

from dataclasses import dataclass

from tidegate.redaction.hits import DOTTED, URL_SAFE, Run

WORD = "[A-Za-z0-9]"
SAFE = r"[A-Za-z0-9_\-]"


@dataclass(frozen=True, slots=True)
class KeyFormat:
    """`prefix` and `body`, both regexes, are the least that makes a key certain.

    It goes on as long as the characters of `run` do; None: it ends where `body` ends.
    """

    name: str
    prefix: str
    body: str
    run: Run | None = URL_SAFE

    @property
    def pattern(self) -> str:
        """The whole value, a regex."""
        rest = ""
        if self.run is DOTTED:
            rest = rf"{SAFE}*+(?:\.{SAFE}++)*"
        elif self.run is not None:
            rest = f"{SAFE}*+"
        return f"(?:{self.prefix})(?:{self.body}){rest}"


_FORMATS = (
    ("openai_key", "sk-", rf"(?:proj|svcacct|admin|None)-{SAFE}{{16,}}"),
    ("openai_key_old", "sk-", rf"{WORD}{{20}}T3BlbkFJ"),
    ("anthropic_key", "sk-", rf"ant(?:-[a-z0-9]{{2,10}})?-{SAFE}{{16,}}"),
    ("openrouter_key", "sk-", rf"or-v1-{SAFE}{{16,}}"),
    ("sk_key", "sk-", rf"{WORD}{{20}}"),
    (
        "sk_vendor_key",
        "sk-",
        rf"(?:[a-z0-9]{{2,10}}-){{1,2}}(?=[a-z_\-]{{0,24}}[A-Z0-9]){SAFE}{{24,}}",
    ),
    ("slack_token", "xox[abceoprs]-", r"[A-Za-z0-9\-]{15,}"),
    ("slack_app", "xapp-", r"[0-9]-[A-Za-z0-9\-]{15,}"),
    ("google_client_secret", "GOCSPX-", rf"{SAFE}{{20,}}"),
    ("pypi_token", "pypi-", rf"{SAFE}{{50,}}"),
    ("xai_key", "xai-", rf"{WORD}{{40,}}"),
    ("perplexity_key", "pplx-", rf"{WORD}{{32,}}"),
    ("nvidia_key", "nvapi-", rf"{SAFE}{{40,}}"),
    ("tavily_key", "tvly-", rf"{SAFE}{{24,}}"),
    ("cerebras_key", "csk-", rf"{WORD}{{40,}}"),
    ("new_relic_key", "NRAK-", "[A-Z0-9]{20,}"),
    ("postman_key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{20,}"),
    ("contentful_token", "CFPAT-", rf"{SAFE}{{30,}}"),
    ("pulumi_token", "pul-", "[0-9a-f]{40,}"),
    ("heroku_key", "HRKU-", rf"{SAFE}{{30,}}"),
    ("tailscale_key", "tskey-", rf"[a-z]{{3,8}}-{SAFE}{{16,}}"),
    ("brevo_key", "xkeysib-", r"[0-9a-f]{40,}"),
    ("square_token", "sq0(?:atp|csp)-", rf"{SAFE}{{20,}}"),
    ("age_key", "AGE-SECRET-KEY-", "1[A-Z0-9]{50,}"),
    ("github_token", "gh[pousr]_", rf"{WORD}{{20,}}"),
    ("github_pat", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    ("stripe_key", "[srp]k_(?:live|test|prod)_", rf"{WORD}{{12,}}"),
    ("webhook_secret", "whsec_", rf"{WORD}{{20,}}"),
    ("npm_token", "npm_", rf"{WORD}{{30,}}"),
    ("huggingface_token", "hf_", rf"{WORD}{{30,}}"),
    ("groq_key", "gsk_", rf"{WORD}{{20,}}"),
    ("replicate_token", "r8_", rf"{WORD}{{30,}}"),
    ("digitalocean_token", "do[opr]_v1_", "[0-9a-f]{40,}"),
    ("shopify_token", "shp(?:at|ca|pa|ss)_", "[0-9A-Fa-f]{32,}"),
    ("linear_key", "lin_api_", rf"{WORD}{{30,}}"),
    ("docker_token", "dckr_pat_", rf"{SAFE}{{20,}}"),
    ("rubygems_key", "rubygems_", "[0-9a-f]{40,}"),
    ("grafana_token", "glsa_", rf"{WORD}{{30,}}"),
    ("sentry_token", "sntry[su]_", rf"{SAFE}{{40,}}"),
    ("figma_token", "figd_", rf"{SAFE}{{30,}}"),
    ("fly_token", "fo1_", rf"{SAFE}{{30,}}"),
    ("supabase_token", "sbp_", "[0-9a-f]{40,}"),
    ("supabase_key", "sb_secret_", rf"{SAFE}{{20,}}"),
    ("notion_token", "ntn_", rf"{WORD}{{40,}}"),
    ("posthog_key", "phx_", rf"{WORD}{{40,}}"),
    ("langsmith_key", "lsv2_[ps][tk]_", "[0-9a-f]{32,}"),
    ("jina_key", "jina_", rf"{SAFE}{{40,}}"),
    ("shippo_token", "shippo_(?:live|test)_", "[0-9a-f]{40,}"),
)
_DOTTED = (
    ("gitlab_token", "gl(?:[pci][atbm]t|[rdf]t|oas|soat|agent)-", rf"{SAFE}{{20,}}"),
    ("google_oauth", r"ya29\.", rf"{SAFE}{{20,}}"),
    ("sendgrid_key", r"SG\.", rf"{SAFE}{{16,}}\.{SAFE}{{16,}}"),
    ("vault_token", r"hv[sbr]\.", rf"{SAFE}{{20,}}"),
    ("doppler_token", r"dp\.[a-z]{2,5}\.", rf"{WORD}{{30,}}"),
    ("airtable_token", rf"pat{WORD}{{14}}\.", "[0-9a-f]{40,}"),
    (
        "discord_token",
        rf"[MNO]{SAFE}{{23,25}}\.",
        rf"{SAFE}{{6}}\.{SAFE}{{27,}}",
    ),
)
_ENDED = (
    ("mailgun_key", r"(?<![A-Za-z0-9_\-])key-", "[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("aws_access_key", "A[KSBC][IC]A", "[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("twilio_key", "SK", "[0-9a-f]{32}(?![A-Za-z0-9])"),
)
_OTHERS = (
    ("google_api_key", "AIz", rf"a{SAFE}{{30,}}"),
    ("databricks_token", "dapi", "[0-9a-f]{32,}"),
    ("atlassian_token", "AT[AC]TT3", rf"x{SAFE}{{40,}}"),
)
FORMATS = (
    *(KeyFormat(*row) for row in (*_FORMATS, *_OTHERS)),
    *(KeyFormat(*row, run=DOTTED) for row in _DOTTED),
    *(KeyFormat(*row, run=None) for row in _ENDED),
)

ANCHORS = (
    # In names of code and in words with hyphens something shorter follows: a cheap first question.
    (
        r"\-",
        rf"(?={SAFE}{{16}})(?:(?<=sk-)|(?<=xox[a-z]-)|(?<=xapp-)|(?<=pypi-)|(?<=xai-)|(?<=pplx-)"
        r"|(?<=gl[pci][atbm]t-)|(?<=gl[rdf]t-)|(?<=gloas-)|(?<=glsoat-)|(?<=glagent-)|(?<=GOCSPX-)"
        r"|(?<=nvapi-)|(?<=tvly-)|(?<=NRAK-)|(?<=PMAK-)|(?<=CFPAT-)|(?<=pul-)|(?<=HRKU-)"
        r"|(?<=tskey-)|(?<=xkeysib-)|(?<=key-)[0-9a-f]{32}|(?<=sq0[ac][ts]p-)|(?<=KEY-)1)",
    ),
    (
        "_",
        rf"(?={WORD}{{10}})(?:(?<=gh[pousr]_)|(?<=_pat_)|(?<=[srp]k_[ltp][ier][vso][etd]_)"
        r"|(?<=whsec_)|(?<=npm_)|(?<=hf_)|(?<=gsk_)|(?<=r8_)|(?<=do[opr]_v1_)|(?<=shp[acps][ats]_)"
        r"|(?<=lin_api_)|(?<=rubygems_)|(?<=glsa_)|(?<=sntry[su]_)|(?<=figd_)|(?<=fo1_)|(?<=sbp_)"
        r"|(?<=sb_secret_)|(?<=ntn_)|(?<=phx_)|(?<=lsv2_[ps][tk]_)|(?<=jina_)|(?<=shippo_live_)"
        r"|(?<=shippo_test_))",
    ),
    (
        r"\.",
        rf"(?={SAFE}{{16}})(?:(?<=SG\.)|(?<=ya29\.)|(?<=hv[sbr]\.)|(?<=dp\.[a-z]{{2}}\.)"
        r"|(?<=dp\.[a-z]{3}\.)|(?<=dp\.[a-z]{4}\.)|(?<=dp\.[a-z]{5}\.)"
        rf"|(?<=pat{WORD}{{14}}\.)[0-9a-f]{{40}}|(?<=\.{SAFE}{{6}}\.){SAFE}{{27}})",
    ),
    ("A", "(?<=A[KSBC][IC]A)[A-Z0-9]{16}"),
    ("K", "(?<=SK)[0-9a-f]{32}"),
    ("z", "(?<=AIz)a"),
    # One of the first twelve hexadecimal digits is a decimal one (all but one in a hundred
    # thousand); the letters of the prefix are too frequent to look for.
    (
        "0-9",
        "(?:(?<=TT3)x|(?=[0-9a-f]{12})(?:"
        + "|".join(f"(?<=dapi[a-f]{{{size}}}[0-9])" for size in range(13))
        + "))",
    ),
)
"""What the prefilter looks for, by character: (set, regex that follows)."""
