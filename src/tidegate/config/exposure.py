"""Is it safe to listen where this configuration listens?

Lives here: what `serve` refuses to do in front of a network and `check` reports: demo tokens, an
anonymous principal, an unprotected admin listener. Does not live here: literal secrets
(checks.secrets), Host and Origin of single requests (gateway), what a reload may not switch
(takeover).
"""

import hashlib
from collections.abc import Callable
from importlib.util import find_spec

from tidegate.config.checks.effect import anthropic_providers
from tidegate.config.demo_world import PUBLISHED
from tidegate.config.errors import Problem
from tidegate.config.folders import on_redis
from tidegate.config.models import Config
from tidegate.config.places import Path, spell
from tidegate.config.shapes import is_loopback


def exposure_problems(config: Config, *, listening_on: str | None = None) -> tuple[Problem, ...]:
    """Why this configuration must not be served on its address; empty when it may be.

    `listening_on`: the address of a gateway that runs already and is to take it over. It keeps
    that address whatever the file says.
    """
    found: list[tuple[Path, str, str]] = []
    host, admin = config.server.host, config.server.admin
    if not (is_loopback(host) and is_loopback(listening_on or host)):
        demo = {hashlib.sha256(token.encode()).hexdigest() for token in PUBLISHED}
        found.extend(
            (
                ("identity", "keys", index),
                "everybody knows this demo key, and the listener is not on loopback",
                "replace it by a key of your own, or listen on 127.0.0.1",
            )
            for index, key in enumerate(config.identity.keys)
            if key.digest in demo
        )
        if config.identity.anonymous is not None:
            found.append(
                (
                    ("identity", "anonymous"),
                    "anybody on the network may call without a key",
                    "set `anonymous: null`, or listen on 127.0.0.1",
                )
            )
    published = admin.token is not None and admin.token.get_secret_value() in PUBLISHED
    if not is_loopback(admin.host) and published:
        found.append(
            (
                ("server", "admin", "token"),
                "everybody knows this demo token, and the admin listener is not on loopback",
                "replace it by a token of your own, or keep the listener on 127.0.0.1",
            )
        )
    if not is_loopback(admin.host) and admin.token is None:
        found.append(
            (
                ("server", "admin", "host"),
                "the admin listener is not on loopback and has no token",
                "set `server.admin.token`, or keep it on 127.0.0.1",
            )
        )
    return tuple(problem_at(config, path, wrong, right) for path, wrong, right in found)


def serving_problems(config: Config, *, listening_on: str | None = None) -> tuple[Problem, ...]:
    """Every reason for `serve` to refuse a valid configuration.

    What exposure_problems finds, and keys that this release cannot obey and must not replace by
    something weaker.
    """
    unable = [
        problem_at(config, path, "this release does not speak it", "name an endpoint for openai")
        for path in anthropic_providers(config)
    ]
    return (
        *exposure_problems(config, listening_on=listening_on),
        *missing_packages(config),
        *unable,
    )


def is_installed(package: str) -> bool:
    """Whether this installation has it."""
    return find_spec(package) is not None


def missing_packages(
    config: Config, *, has: Callable[[str], bool] = is_installed
) -> tuple[Problem, ...]:
    """What this configuration needs and this installation does not have."""
    if not on_redis(config.store.url) or has("redis"):
        return ()
    wrong, right = "the package for Redis is not installed", "pip install 'tidegate[redis]'"
    return (problem_at(config, ("store", "url"), wrong, right),)


def problem_at(config: Config, path: Path, wrong: str, right: str) -> Problem:
    """A problem at `path`, with its place in the file if it has one."""
    origin = config.origin
    if origin.document.holds(path):
        mark = origin.document.of_value(path)
        return Problem(config.source, mark.line, mark.col, spell(path), wrong, right)
    # Not from a line of the file: the command line, or the demo world.
    return Problem(origin.places.get(path, config.source), 0, 0, spell(path), wrong, right)
