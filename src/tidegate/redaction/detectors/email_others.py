"""Does something else than an address stand around this `@`?

Lives here: files (`logo@2x.png`), packages, units of systemd and products of matrices, which have
the form of an address. Does not live here: the form itself (email).

Nothing here may lose an address: the last label must be one under which no mail is delivered.
"""

import re

# None of them is a top-level domain. `.sh`, `.py`, `.md`, `.zip`, `.app`, `.rs` and `.mov` are.
_FILES = re.compile(
    r"png|jpg|jpeg|gif|svg|webp|ico|bmp|avif|js|mjs|cjs|jsx|tsx|ts|css|"
    r"scss|html|htm|json|xml|yml|yaml|toml|txt|csv|tsv|pdf|log|conf|ini|"
    r"woff|ttf|wasm|vue|java|cpp|dll|exe|jar|whl|tgz|service|socket|timer|"
    r"mount|slice|scope|device|swap|path"
)
# What stands between the name and the suffix of a file; addresses such as `jane@example.com.png`
# name files, too.
_BUILDS = re.compile(r"min|prod|global|esm|umd|cjs|iife|module|bundle|common|runtime|browser")
# Behind an address a parenthesis may follow without a space: `jane@example.com(work)`.
_TOPS = re.compile(
    r"com|net|org|edu|gov|mil|int|arpa|info|biz|name|pro|aero|coop|museum|"
    r"jobs|mobi|travel|tel|cat|asia|post|xxx|app|dev|page|cloud|online|site|"
    r"store|shop|tech|blog|email|mail|live|news|media|digital|agency|solutions|"
    r"services|company|group|team|work|works|studio|design|world|today|life|"
    r"global|network|systems|software|support|center|finance|capital|fund|money|"
    r"bank|law|legal|health|care|clinic|school|academy|university|institute|"
    r"foundation|church|community|social|events|photo|photos|gallery|video|film|"
    r"music|art|wiki|website|space|host|hosting|press|zone|city|house|land|"
    r"estate|realty|homes|berlin|hamburg|koeln|cologne|bayern|wien|tirol|swiss|"
    r"london|paris|amsterdam|brussels|gent|vlaanderen|barcelona|madrid|quebec|"
    r"nyc|boston|miami|tokyo|osaka|sydney|melbourne|moscow|istanbul|africa|eus|"
    r"gal|bzh|corsica|alsace|scot|wales|cymru|irish|local|internal|lan|corp|"
    r"home|intranet|localdomain|localhost|example|test|invalid|gmbh|ltda|"
    r"immobilien|versicherung|consulting|ventures|partners|holdings|engineering|"
    r"properties"
)
_LONGEST_DOMAIN = 64
_IDENTIFIERS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def names_a_thing(text: str, local: str, at: int, stop: int, end: int) -> bool:
    """`local@text[at + 1:stop]` is a file, a unit or an expression, in a view up to `end`."""
    if stop - at > _LONGEST_DOMAIN:
        return False
    first, *between, last = text[at + 1 : stop].lower().split(".")
    if _FILES.fullmatch(last):
        return all(map(_BUILDS.fullmatch, between))
    if stop >= end or text[stop] != "(" or len(last) < 3 or _TOPS.fullmatch(last):
        return False
    # `q@k.transpose(`: a product, and a method of what stands on its right.
    domain = ".".join((first, *between, last))
    return _IDENTIFIERS.fullmatch(local) is not None and _IDENTIFIERS.fullmatch(domain) is not None
