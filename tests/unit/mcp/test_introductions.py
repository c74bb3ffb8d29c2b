"""Is a server introduced as what it says it is, in either era's words?"""

from typing import Any

import pytest

from tidegate.mcp.eras import LEGACY, MODERN, SUPPORTED
from tidegate.mcp.introductions import (
    SERVER_KEY,
    SPOKEN_LEGACY,
    Introduction,
    discovered,
    initialized,
    to_discover,
    to_initialize,
)

INFO = {"name": "s", "version": "1", "title": "S"}
COMMON: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True},
    "logging": {},
    "completions": {},
    "experimental": {"x": {}},
}


def handshake(version: object = LEGACY[0], **more: Any) -> dict[str, Any]:
    capabilities = {**COMMON, "tasks": {}}
    return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": INFO, **more}


def discovery(*versions: object, **more: Any) -> dict[str, Any]:
    capabilities = {**COMMON, "extensions": {"y": {}}}
    meta = {SERVER_KEY: INFO}
    return {
        "supportedVersions": list(versions),
        "capabilities": capabilities,
        "_meta": meta,
        **more,
    }


@pytest.mark.parametrize("version", SPOKEN_LEGACY)
@pytest.mark.parametrize("asked", SPOKEN_LEGACY)
def test_a_handshake_is_told_on_in_the_client_s_revision(version: str, asked: str) -> None:
    server = initialized(handshake(version, instructions="Do."))
    assert server is not None
    told = to_initialize(server, asked)
    answered = asked if asked in LEGACY else LEGACY[0]
    capabilities = {**COMMON, "tasks": {}} if answered == version else COMMON
    assert told == {
        "protocolVersion": answered,
        "capabilities": capabilities,
        "serverInfo": INFO,
        "instructions": "Do.",
    }


@pytest.mark.parametrize("asked", [None, 3, "", "2024-11-05", MODERN, "2099-01-01", *LEGACY])
def test_a_discovery_is_told_on_as_a_handshake(asked: object) -> None:
    server = discovered(discovery(MODERN))
    assert server is not None
    told = to_initialize(server, asked)
    version = asked if asked in LEGACY else LEGACY[0]
    assert told == {"protocolVersion": version, "capabilities": COMMON, "serverInfo": INFO}


def test_a_handshake_is_told_on_as_a_discovery() -> None:
    server = initialized(handshake())
    assert server is not None
    assert to_discover(server) == {
        "supportedVersions": list(SUPPORTED),
        "capabilities": COMMON,
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {SERVER_KEY: INFO},
    }


@pytest.mark.parametrize(
    "odd",
    [
        None,
        [],
        {},
        discovery(),
        discovery(*LEGACY),
        discovery(MODERN, supportedVersions=MODERN),
        discovery(3, None),
    ],
)
def test_what_does_not_name_2026_is_no_discovery(odd: object) -> None:
    assert discovered(odd) is None


@pytest.mark.parametrize("odd", [None, [], {}, handshake(MODERN), handshake("x"), handshake(3)])
def test_a_handshake_in_a_revision_that_we_do_not_speak_is_none(odd: object) -> None:
    assert initialized(odd) is None


def test_what_a_server_leaves_out_or_garbles_is_left_out() -> None:
    for server in (
        discovered({"supportedVersions": [MODERN], "_meta": 3, "capabilities": []}),
        discovered(discovery(MODERN, _meta={SERVER_KEY: {"version": "1"}}, capabilities=None)),
        initialized({"protocolVersion": LEGACY[0], "instructions": 3, "serverInfo": "s"}),
    ):
        assert server is not None
        assert (server.capabilities, server.info, server.instructions) == ({}, None, None)
        assert to_initialize(server, None)["serverInfo"] == {"name": "unnamed", "version": "0"}
        assert "_meta" not in to_discover(server)


def test_capabilities_and_their_parts_are_promised_or_not() -> None:
    server = Introduction(MODERN, {"tools": {"listChanged": True}, "logging": {}, "prompts": True})
    assert server.promises("tools")
    assert server.promises("logging")
    assert server.promises("tools", "listChanged")
    assert not server.promises("prompts", "listChanged")
    assert not server.promises("resources")
    assert not server.promises("logging", "listChanged")
