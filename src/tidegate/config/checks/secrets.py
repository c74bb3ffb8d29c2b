"""Do secrets stand in the file, or travel where others can read them?

Lives here: literal secrets (a warning on loopback, an error elsewhere), short keys, credentials
sent over plain HTTP to another machine. Does not live here: whether the address may be served
at all (exposure).
"""

import re
from collections.abc import Iterator, Mapping

from pydantic import SecretStr

from tidegate.config.addresses import SECRET_WORD, secrets_in
from tidegate.config.checks.effect import redactions
from tidegate.config.demo_world import DEMO_TOKENS, PUBLISHED
from tidegate.config.findings import Findings
from tidegate.config.models import Config
from tidegate.config.places import Path
from tidegate.config.shapes import is_loopback, split_url

_SHORTEST_KEY = 16


def check_secrets(config: Config, findings: Findings) -> None:
    """Every secret that others could read."""
    exposed = not (is_loopback(config.server.host) and is_loopback(config.server.admin.host))
    report = findings.error if exposed else findings.warn
    wrong = "a secret stands in the file itself"
    if exposed:
        wrong += ", and the gateway listens beyond loopback"
    for path, value, example in _secrets(config):
        if _is_literal(path, findings) and value not in PUBLISHED:
            report(path, wrong, f"write {example}, or ${{file:PATH}}")
    for index, key in enumerate(config.identity.keys):
        secret = key.key.get_secret_value() if key.key is not None else DEMO_TOKENS[0]
        if len(secret) < _SHORTEST_KEY and secret not in DEMO_TOKENS:
            findings.warn(
                ("identity", "keys", index, "key"),
                f"a key of fewer than {_SHORTEST_KEY} characters can be guessed",
                "make a longer one, such as with `openssl rand -hex 32`",
            )
    _clear_text(config, findings)


def _is_literal(path: Path, findings: Findings) -> bool:
    """Whether the file itself holds the value at `path`, without any reference in it."""
    return findings.places.holds(path) and path not in findings.references


def _secrets(config: Config) -> Iterator[tuple[Path, str, str]]:
    """Every secret: its path, its value, and a reference that would do."""
    if config.server.admin.token is not None:
        yield (
            ("server", "admin", "token"),
            config.server.admin.token.get_secret_value(),
            "${env:ADMIN_TOKEN}",
        )
    for index, key in enumerate(config.identity.keys):
        if key.key is not None:
            example = f"${{env:{_name(key.principal)}_KEY}}"
            yield ("identity", "keys", index, "key"), key.key.get_secret_value(), example
    yield from _provider_secrets(config)
    for name, server in config.mcp.servers.items():
        path: Path = ("mcp", "servers", name)
        if server.credential is not None:
            example = f"${{env:{_name(name)}_TOKEN}}"
            yield (*path, "credential"), server.credential.get_secret_value(), example
        yield from _secret_values((*path, "env"), server.env)
        yield from _address((*path, "url"), server.url, f"{_name(name)}_URL")
    yield from _address(("store", "url"), config.store.url, "STORE_URL")
    for path, section in redactions(config):
        url = section.classifier.url if section.classifier is not None else None
        yield from _address((*path, "classifier", "url"), url, "CLASSIFIER_URL")


def _provider_secrets(config: Config) -> Iterator[tuple[Path, str, str]]:
    for name, provider in config.providers.items():
        path: Path = ("providers", name)
        for index, credential in enumerate(provider.credentials):
            example = f"${{env:{_name(name)}_KEY}}"
            yield (*path, "credentials", index), credential.get_secret_value(), example
        yield from _secret_values((*path, "headers"), provider.headers)
        yield from _secret_values((*path, "query"), provider.query)
        yield from _address((*path, "proxy"), provider.proxy, f"{_name(name)}_PROXY")


def _address(path: Path, url: str | None, variable: str) -> Iterator[tuple[Path, str, str]]:
    """An address with a secret in it."""
    for secret in secrets_in(url or "")[:1]:
        yield path, secret, f"${{env:{variable}}}"


def _secret_values(path: Path, items: Mapping[str, SecretStr]) -> Iterator[tuple[Path, str, str]]:
    """Entries whose name says that they hold a secret."""
    for name, value in items.items():
        if SECRET_WORD.search(name) and value.get_secret_value():
            yield (*path, name), value.get_secret_value(), f"${{env:{_name(name)}}}"


def _name(word: str) -> str:
    """A word as the name of an environment variable."""
    return re.sub(r"[^A-Z0-9]+", "_", word.upper()).strip("_") or "SECRET"


def _clear_text(config: Config, findings: Findings) -> None:
    """Warn of credentials on plain HTTP beyond this machine."""
    targets: list[tuple[Path, str, bool]] = [
        (("providers", name, "base_url"), provider.base_url, bool(provider.credentials))
        for name, provider in config.providers.items()
    ]
    targets += [
        (("mcp", "servers", name, "url"), server.url or "", server.credential is not None)
        for name, server in config.mcp.servers.items()
    ]
    for path, url, has_secret in targets:
        parts = split_url(url)
        if parts is None or parts.scheme != "http" or is_loopback(parts.hostname or ""):
            continue
        if has_secret:
            findings.warn(path, "the credential travels in clear text", "use https")
