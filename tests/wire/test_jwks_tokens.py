"""Does the whole gateway take tokens, with keys from a real server, and is it led nowhere else?"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth
from mcp.shared.auth import ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed

from tests.unit.identity.tokens import claims, jwk, jwks, token
from tests.wire.gateways import CHAT, CREDENTIAL, JSON, KEYED, Served, chat, config_text, serving
from tidegate.config import load_config_text
from tidegate.demo.listener import bind, listening
from tidegate.demo.mcp_backend import McpBackend
from tidegate.testing.asgi import WAIT_S
from tidegate.testing.scripted import Script, ScriptedUpstream, answer_bytes, steps
from tidegate.testing.sockets import Answer, RawClient
from tidegate.transport.outside import NotFetched, fetch_outside, may_reach, names_loopback

pytestmark = pytest.mark.full

AUDIENCE = "https://gateway.example/mcp"
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
COMPLETION = json.dumps(
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}}]}
).encode()
MODEL = steps(answer_bytes(headers=[JSON], body=COMPLETION))


def run(body: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * WAIT_S):
            await body

    asyncio.run(bounded())


def published(*names: str) -> Script:
    return steps(answer_bytes(headers=[JSON], body=jwks(*map(jwk, names))))


def issuer(url: str, name: str = "https://id.example", **more: Any) -> dict[str, Any]:
    return {"issuer": name, "audience": AUDIENCE, "jwks_url": url, **more}


def bearer(**changed: object) -> tuple[str, str]:
    text = token(claims(exp=10**10, **changed))
    return ("Authorization", f"Bearer {text.decode()}")


async def ask(
    served: Served, target: str, *headers: tuple[str, str], body: bytes = b"", method: str = "POST"
) -> Answer:
    async with await RawClient.connect("127.0.0.1", served.scene.port) as client:
        return await client.ask(method, target, headers=headers, body=body)


def test_a_token_is_good_for_models_and_tools_and_stays_in_the_gateway(tmp_path: Path) -> None:
    async def body() -> None:
        backend = McpBackend(token=CREDENTIAL)
        async with (
            ScriptedUpstream(published("ec")) as keys,
            ScriptedUpstream(MODEL) as model,
            listening(backend, bind(0)) as mcp,
        ):
            text = config_text(
                tmp_path,
                primary=f"{model.url}/v1",
                mcp=f"http://127.0.0.1:{mcp}/mcp",
                limits=[],
                identity={"jwt": [issuer(f"{keys.url}/jwks")]},
            )
            async with serving(text) as served:
                good = bearer()
                assert (await ask(served, CHAT, JSON, good, body=chat())).status == 200
                tools = await ask(served, "/mcp", JSON, good, body=LIST)
                assert tools.status == 200
                assert b"get_status" in tools.body
                assert (await ask(served, CHAT, JSON, KEYED, body=chat())).status == 401
                assert served.app.readiness.report()["ready"] is True
            assert len(keys.requests) == 1
            assert {name.lower() for name, _ in keys.requests[0].headers} == {
                "connection",
                "host",
                "accept",
                "accept-encoding",
            }
            assert model.requests[0].header("authorization") == f"Bearer {CREDENTIAL}"

    run(body())


def test_clients_find_the_issuer_without_a_token_and_nothing_else(tmp_path: Path) -> None:
    async def body() -> None:
        text = config_text(tmp_path, identity={"jwt": [issuer("http://127.0.0.1:9/jwks")]})
        async with serving(text) as served:
            refused = await ask(served, CHAT, JSON, body=chat())
            assert refused.status == 401
            url = "https://gateway.example/.well-known/oauth-protected-resource/mcp"
            assert refused.header("www-authenticate") == f'Bearer resource_metadata="{url}"'
            for path in ("", "/mcp"):
                target = f"/.well-known/oauth-protected-resource{path}"
                found = await ask(served, target, method="GET")
                assert found.status == 200
                assert json.loads(found.body) == {
                    "resource": AUDIENCE,
                    "authorization_servers": ["https://id.example"],
                    "bearer_methods_supported": ["header"],
                }
                assert (await ask(served, target)).status == 405
            other = await ask(served, "/.well-known/oauth-protected-resource/v1", method="GET")
            assert other.status == 404
            # Keys that never came: what cannot be judged is not called wrong.
            assert (await ask(served, CHAT, JSON, bearer(), body=chat())).status == 503
            report = served.app.readiness.report()
            assert report["ready"] is False
            assert report["reasons"] == ["issuer_keys_missing"]
            assert report["issuers"] == {"without_keys": ["https://id.example"]}

    run(body())


def test_without_issuers_there_is_no_such_document(tmp_path: Path) -> None:
    async def body() -> None:
        async with serving(config_text(tmp_path)) as served:
            target = "/.well-known/oauth-protected-resource"
            assert (await ask(served, target, method="GET")).status == 404

    run(body())


def test_a_reload_takes_issuers_in_and_out_and_keeps_keys_that_are_there(tmp_path: Path) -> None:
    async def body() -> None:
        async with (
            ScriptedUpstream(published("ec")) as keys,
            ScriptedUpstream(MODEL) as model,
        ):
            parts: dict[str, Any] = {"primary": f"{model.url}/v1", "limits": []}
            plain = config_text(tmp_path, **parts)
            first = issuer(f"{keys.url}/jwks")
            with_one = config_text(tmp_path, **parts, identity={"jwt": [first]})
            with_two = config_text(
                tmp_path,
                **parts,
                identity={"jwt": [first, issuer(f"{keys.url}/two", "https://two.example")]},
            )
            async with serving(plain) as served:
                for text, expected in ((with_one, 200), (with_two, 200), (plain, 401)):
                    served.app.reload(load_config_text(text, {}))
                    answer = await ask(served, CHAT, JSON, bearer(), body=chat())
                    assert answer.status == expected
            assert [request.target for request in keys.requests] == ["/jwks", "/two"]

    run(body())


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (steps(answer_bytes(302, headers=[("Location", "http://127.0.0.1:1/")])), "status_302"),
        (steps(answer_bytes(500)), "status_500"),
        (steps(answer_bytes(headers=[("Content-Encoding", "gzip")], body=b"x")), "content_coding"),
        (steps(answer_bytes(body=b"x" * 300_000)), "too_large"),
        pytest.param(
            steps(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
            "too_slow",
            marks=pytest.mark.full,
        ),
        (steps(b"nonsense\r\n\r\n"), "no_connection"),
    ],
)
def test_an_answer_that_is_none_is_refused_and_no_redirect_followed(
    script: Script, reason: str
) -> None:
    async def body() -> None:
        async with ScriptedUpstream(script) as keys:
            with pytest.raises(NotFetched) as caught:
                await fetch_outside(
                    f"{keys.url}/jwks", deadline_s=1.2 if "slow" in reason else 30.0
                )
            assert caught.value.reason == reason
            assert len(keys.requests) == 1

    run(body())


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://id.example/jwks", "clear_text"),
        ("https://10.0.0.7/jwks", "address_not_allowed"),
        ("https://[fd00::1]/jwks", "address_not_allowed"),
        ("https://169.254.169.254/jwks", "address_not_allowed"),
        ("https://[::ffff:10.0.0.7]/jwks", "address_not_allowed"),
        ("https://0.0.0.0/jwks", "address_not_allowed"),
        ("ftp://127.0.0.1/jwks", "clear_text"),
        ("http://127.0.0.1:1/jwks", "no_connection"),
    ],
)
def test_an_address_inside_is_not_asked(address: str, reason: str) -> None:
    async def body() -> None:
        with pytest.raises(NotFetched) as caught:
            await fetch_outside(address)
        assert caught.value.reason == reason

    run(body())


def test_a_name_that_leads_inside_is_not_asked() -> None:
    async def body() -> None:
        async with ScriptedUpstream(published("ec")) as keys:
            port = int(keys.url.rpartition(":")[2])
            # A name of this machine that does not say so, as a rebound name would be.
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo("127.0.0.1", port)

            async def rebound(*_: object, **__: object) -> list[Any]:
                return found

            with pytest.raises(NotFetched) as caught:
                await fetch_outside(f"https://keys.example:{port}/jwks", names=rebound)
            assert caught.value.reason == "address_not_allowed"
            assert keys.requests == []

    run(body())


def test_what_may_be_reached_is_the_world_or_this_machine_and_nothing_between() -> None:
    world = ("8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808")
    inside = (
        *("10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.1.1", "100.64.0.1", "0.0.0.0"),  # noqa: S104
        *("224.0.0.1", "255.255.255.255", "fe80::1%eth0", "fc00::1", "ff02::1", "::"),
        *("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "192.0.2.1"),
    )
    here = ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1")
    for addresses, outside, loopback in (
        (world, True, False),
        (inside, False, False),
        (here, False, True),
    ):
        for address in addresses:
            assert may_reach(address, loopback=False) is outside, address
            assert may_reach(address, loopback=True) is loopback, address
    assert [names_loopback(name) for name in ("localhost", "127.0.0.1", "::1", "a.example")] == [
        *(True, True, True, False)
    ]


@pytest.mark.full
def test_the_library_is_loaded_with_the_first_issuer_and_by_no_request() -> None:
    script = """
import sys
import tidegate.gateway.app
assert "jwt" not in sys.modules, "a gateway without issuers pays"
from tidegate.identity.jwt_keys import Algorithms
made = Algorithms()
before = set(sys.modules)
from tests.unit.identity import tokens
kinds = (("rsa", "RS256"), ("rsa", "PS256"), ("ec", "ES256"), ("ed", "EdDSA"))
texts = [tokens.token(key=key, algorithm=name) for key, name in kinds]
from tidegate.identity.jwt import claimed, verified
document = tokens.jwks(*map(tokens.jwk, ("rsa", "ec", "ed")))
loaded = set(sys.modules)
keys = made.keys(document)
for text in texts:
    asked = claimed(text, {tokens.ISSUER: tokens.SETTINGS})
    assert verified(asked, keys, made, tokens.NOW_S).name == "vera"
print(sorted(set(sys.modules) - loaded))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_an_official_client_finds_its_way_from_the_challenge_to_the_issuer(tmp_path: Path) -> None:
    async def body() -> None:
        text = config_text(tmp_path, identity={"jwt": [issuer("http://127.0.0.1:9/jwks")]})
        async with serving(text) as served:
            refused = await ask(served, "/mcp", JSON, body=LIST)
            challenge = {"WWW-Authenticate": refused.header("www-authenticate") or ""}
            answer = httpx2.Response(refused.status, headers=challenge)
            url = extract_resource_metadata_from_www_auth(answer)
            assert url == "https://gateway.example/.well-known/oauth-protected-resource/mcp"
            found = await ask(served, url.removeprefix("https://gateway.example"), method="GET")
            read = ProtectedResourceMetadata.model_validate_json(found.body)
            assert check_resource_allowed(AUDIENCE, str(read.resource))
            assert [str(each).rstrip("/") for each in read.authorization_servers] == [
                "https://id.example"
            ]

    run(body())


def test_a_refusal_is_a_word_in_the_log_and_nothing_of_a_token_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    good, late = bearer(sub="canary-of-the-subject-of-a-good-token"), token(claims(exp=1))

    async def body() -> None:
        async with ScriptedUpstream(published("ec")) as keys:
            identity = {"jwt": [issuer(f"{keys.url}/jwks", "https://id.example")]}
            async with serving(config_text(tmp_path, identity=identity)) as served:
                wrong = ("Authorization", f"Bearer {late.decode()}")
                assert (await ask(served, "/mcp", JSON, wrong, body=LIST)).status == 401
                assert (await ask(served, "/mcp", JSON, good, body=b"{")).status == 400

    run(body())
    told = [r.__dict__ for r in caplog.records if r.getMessage() == "request_refused"]
    assert [(each["reason"], each["issuer"]) for each in told] == [
        ("expired", "https://id.example")
    ]
    kept = caplog.text.encode() + b"".join(
        path.read_bytes() for path in tmp_path.iterdir() if path.is_file()
    )
    for text in (late, good[1].removeprefix("Bearer ").encode()):
        for part in text.split(b"."):
            assert part not in kept
