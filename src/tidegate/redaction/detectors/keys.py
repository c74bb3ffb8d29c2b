"""Is this an access key that its issuer marks with a prefix, or a web token?

Lives here: the table of prefixes, each with the characters and the least length of what follows.
Does not live here: values known by the word before them (keywords).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.redaction.hits import DOTTED, RANKS, URL_SAFE, Hit, Run
from tidegate.redaction.spans import SECRET

_WORD = "[A-Za-z0-9]"
_SAFE = r"[A-Za-z0-9_\-]"


@dataclass(frozen=True, slots=True)
class KeyFormat:
    """`anchor` is (first characters, regex after them); a match of `pattern` contains one."""

    name: str
    anchor: tuple[str, str]
    pattern: str
    run: Run | None = URL_SAFE


FORMATS = (
    KeyFormat(
        "sk_key",
        (r"\-", "(?<=sk-)"),
        rf"sk-(?:(?:proj|svcacct|admin|None|ant(?:-[a-z0-9]{{2,10}})?|or-v1)-{_SAFE}{{16,}}"
        rf"|{_WORD}{{20}}"
        rf"|(?:[a-z0-9]{{2,10}}-){{1,2}}(?=[a-z_\-]{{0,24}}[A-Z0-9]){_SAFE}{{24,}})",
    ),
    KeyFormat(
        "aws_access_key",
        ("KSBC", "(?<=A[KSBC])[IC]A"),
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        None,
    ),
    KeyFormat("github_token", ("_", "(?<=gh[pousr]_)"), rf"gh[pousr]_{_WORD}{{20,}}"),
    KeyFormat("github_pat", ("_", "(?<=github_pat_)"), r"github_pat_[A-Za-z0-9_]{22,}"),
    KeyFormat("slack_token", (r"\-", "(?<=xox[a-z]-)"), r"xox[abceoprs]-[A-Za-z0-9\-]{15,}"),
    KeyFormat("slack_app", (r"\-", "(?<=xapp-)"), r"xapp-[0-9]-[A-Za-z0-9\-]{15,}"),
    KeyFormat("google_api_key", ("z", "(?<=AIz)a"), rf"AIza{_SAFE}{{30,}}"),
    KeyFormat("google_oauth", ("9", r"(?<=ya29)\."), rf"ya29\.{_SAFE}{{20,}}"),
    KeyFormat("google_client_secret", (r"\-", "(?<=GOCSPX-)"), rf"GOCSPX-{_SAFE}{{20,}}"),
    KeyFormat(
        "stripe_key",
        ("_", "(?<=[srp]k_)(?:live|test|prod)_"),
        rf"[srp]k_(?:live|test|prod)_{_WORD}{{12,}}",
    ),
    KeyFormat("webhook_secret", ("_", "(?<=whsec_)"), rf"whsec_{_WORD}{{20,}}"),
    KeyFormat("npm_token", ("_", "(?<=npm_)"), rf"npm_{_WORD}{{30,}}"),
    KeyFormat("pypi_token", (r"\-", "(?<=pypi-)"), rf"pypi-{_SAFE}{{50,}}"),
    KeyFormat("huggingface_token", ("_", "(?<=hf_)"), rf"hf_{_WORD}{{30,}}"),
    KeyFormat(
        "gitlab_token",
        (
            r"\-",
            "(?<=gl[pci][atbm]t-)|(?<=gl[rdf]t-)|(?<=gloas-)|(?<=glsoat-)|(?<=glagent-)",
        ),
        rf"gl(?:[pci][atbm]t|[rdf]t|oas|soat|agent)-{_SAFE}{{20,}}",
    ),
    KeyFormat(
        "sendgrid_key", (r"\.", r"(?<=SG\.)"), rf"SG\.{_SAFE}{{16,}}\.{_SAFE}{{16,}}", DOTTED
    ),
    KeyFormat("groq_key", ("_", "(?<=gsk_)"), rf"gsk_{_WORD}{{20,}}"),
    KeyFormat("xai_key", (r"\-", "(?<=xai-)"), rf"xai-{_WORD}{{40,}}"),
    KeyFormat("perplexity_key", (r"\-", "(?<=pplx-)"), rf"pplx-{_WORD}{{32,}}"),
    KeyFormat("replicate_token", ("_", "(?<=r8_)"), rf"r8_{_WORD}{{30,}}"),
    KeyFormat("digitalocean_token", ("_", "(?<=do[opr]_)v1_"), r"do[opr]_v1_[0-9a-f]{40,}"),
    KeyFormat(
        "shopify_token",
        ("_", "(?<=shpat_)|(?<=shpca_)|(?<=shppa_)|(?<=shpss_)"),
        r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}",
    ),
    KeyFormat("databricks_token", ("p", "(?<=dap)i[0-9a-f]{8}"), r"dapi[0-9a-f]{32,}"),
    KeyFormat("vault_token", (r"\.", r"(?<=hv[sbr]\.)"), rf"hv[sbr]\.{_SAFE}{{20,}}"),
    KeyFormat(
        "doppler_token", (r"\.", r"(?<=dp\.)[a-z]{2,5}\."), rf"dp\.[a-z]{{2,5}}\.{_WORD}{{30,}}"
    ),
    KeyFormat("linear_key", ("_", "(?<=lin_)api_"), rf"lin_api_{_WORD}{{30,}}"),
)


def _rest(run: Run | None) -> str:
    """The same characters as the run, so that long and short keys end alike."""
    if run is DOTTED:
        return rf"{_SAFE}*+(?:\.{_SAFE}++)*"
    return "" if run is None else f"{_SAFE}*+"


class Keys:
    """Prefixed keys; a key ends where its characters end, however long it is."""

    family = "key"
    rank = RANKS["key"]
    shortest = 20
    anchors = tuple(form.anchor for form in FORMATS)

    def __init__(self) -> None:
        names = "|".join(f"(?P<{form.name}>{form.pattern}{_rest(form.run)})" for form in FORMATS)
        self._pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{names})")
        self._runs = {form.name: form.run for form in FORMATS}

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for found in self._pattern.finditer(text, start, end):
            rule = found.lastgroup or self.family
            yield Hit(found.start(), found.end(), self.family, rule, SECRET, self._runs[rule])


_JWT = re.compile(
    rf"(?<![A-Za-z0-9])(?:eyJ|ZXlK)"
    rf"(?:{_SAFE}{{10,}}+\.{_SAFE}{{10,}}+|{_SAFE}{{200,}}+)(?:\.{_SAFE}++)*"
)


class WebTokens:
    """JWT and JWE, also encoded once more; a long header without its dot counts from 200 on."""

    family = "jwt"
    rank = RANKS["jwt"]
    shortest = 24
    anchors = (("J", "(?<=eyJ)"), ("K", "(?<=ZXlK)"))

    def find(self, text: str, start: int, end: int) -> Iterator[Hit]:
        """See `Detector`."""
        for found in _JWT.finditer(text, start, end):
            yield Hit(found.start(), found.end(), self.family, "jwt", SECRET, DOTTED)
