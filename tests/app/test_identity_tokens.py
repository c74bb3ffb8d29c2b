"""What does a caller with a token get, at both kinds of paths?"""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.app.mcp_world import CREDENTIAL, TOKENS, World, ask, call, keys, value
from tests.app.virtual import clock_here, run_timeless
from tests.unit.identity.test_jwks import Published, passing
from tests.unit.identity.tokens import ISSUER, SETTINGS, claims, private, token
from tidegate.errors import TidegateError, Unauthenticated
from tidegate.gateway.identify import TokenGate, identify
from tidegate.gateway.metadata import metadata_of
from tidegate.identity.jwks import FetchFailed, TokenKeys
from tidegate.testing.asgi import ASGIExchange

URL = "https://gateway.example/.well-known/oauth-protected-resource/mcp"
ADMIN_CALL = call("admin_reset_key", {"key": "k"})


class Tokens:
    """A world whose gate takes tokens of the issuer."""

    def __init__(self, *names: str, opened: bool = True) -> None:
        self.published = Published(*(names or ("ec",)))
        self.clock = clock_here()
        self.rings = TokenKeys(self.published.fetch, self.clock)
        self.rings.retain((SETTINGS,))
        self.gate = TokenGate({ISSUER: SETTINGS}, self.rings, URL)
        self.world = World(tokens=self.gate)
        self.opened = opened

    async def __aenter__(self) -> "Tokens":
        if self.opened:
            await self.rings.open()
            await passing(0.1)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.rings.close()

    def body(self, **changed: object) -> dict[str, object]:
        """Good claims by the clock of the world."""
        return claims(**{"exp": self.clock.now_s() + 300, **changed})

    async def post(self, text: bytes, message: object = None, **headers: str) -> ASGIExchange:
        return await self.world.post(
            message or ask("tools/list"),
            role="",
            authorization=f"Bearer {text.decode()}",
            **headers,
        )


def run(body: Any) -> None:
    run_timeless(body())


def test_a_token_calls_what_its_roles_may_and_never_travels_upstream() -> None:
    async def body() -> None:
        async with Tokens() as made:
            text = token(made.body())
            allowed = await made.post(text, call("get_status"))
            denied = await made.post(text, ADMIN_CALL)
            admin = await made.post(token(made.body(roles=["admin"])), ADMIN_CALL)
        assert value(allowed)["result"]["echo"]["name"] == "get_status"
        assert value(denied)["error"]["data"] == {
            "tool": "admin_reset_key",
            "required_role": "admin",
            "your_role": "viewer",
        }
        assert "result" in value(admin)
        for asked in made.world.transport.asked:
            assert asked.headers["authorization"] == f"Bearer {CREDENTIAL}"
            sent = json.dumps(asked.headers).encode() + asked.raw
            assert text not in sent
            assert text.split(b".")[2] not in sent
        trail = made.world.records.ends[0].principal
        assert (trail.name, trail.tenant, trail.issuer) == ("vera", "acme", ISSUER)

    run(body)


@pytest.mark.parametrize("url", [URL, None])
def test_a_denial_with_a_status_points_to_the_issuer_too(url: str | None) -> None:
    async def body() -> None:
        async with Tokens() as made:
            gate = replace(made.gate, metadata_url=url)
            made.world.policy = replace(made.world.policy, tokens=gate, errors="spec")
            exchange = await made.post(token(made.body()), ADMIN_CALL)
            assert exchange.status == 403
            pointer = f', resource_metadata="{url}"' if url else ""
            assert exchange.header("www-authenticate") == (
                f'Bearer error="insufficient_scope", scope="admin"{pointer}'
            )

    run(body)


def test_a_key_works_beside_tokens() -> None:
    async def body() -> None:
        async with Tokens() as made:
            exchange = await made.world.post(call("get_status"))
            assert exchange.status == 200
            assert made.world.records.ends[0].principal.issuer == ""

    run(body)


REFUSED = {
    "expired": ("expired", {"exp": 1}, "ec"),
    "audience": ("audience", {"aud": "https://other.example"}, "ec"),
    "issuer": ("unknown_issuer", {"iss": "https://evil.example"}, "ec"),
    "signature": ("signature", {}, "ec-other"),
    "tenant": ("tenant_claim", {"tenant": None}, "ec"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_token_is_401_with_where_to_get_a_good_one_and_the_word_is_for_the_log(
    name: str,
) -> None:
    reason, changed, signer = REFUSED[name]

    async def body() -> None:
        async with Tokens() as made:
            text = token(made.body(**changed), signer=private(signer))
            exchange = await made.post(text)
            assert exchange.status == 401
            assert exchange.header("www-authenticate") == (
                f'Bearer resource_metadata="{URL}", error="invalid_token"'
            )
            error = value(exchange)["error"]
            assert (value(exchange)["id"], error["code"]) == (None, -32000)
            assert reason not in exchange.body.decode()
            with pytest.raises(Unauthenticated) as caught:
                await made.gate.principal(text)
            assert caught.value.reason == reason
            assert caught.value.issuer == ("" if name == "issuer" else ISSUER)
            assert text.decode() not in str(caught.value)
        assert made.world.sent == []
        assert made.world.records.ends == []

    run(body)


def test_without_a_credential_the_challenge_names_no_error() -> None:
    async def body() -> None:
        async with Tokens() as made:
            exchange = await made.world.post(ask("tools/list"), role="")
            assert exchange.status == 401
            assert exchange.header("www-authenticate") == f'Bearer resource_metadata="{URL}"'
            wrong = await made.world.post(
                ask("tools/list"), role="", authorization="Bearer no-key-of-ours"
            )
            assert wrong.header("www-authenticate") == (
                f'Bearer resource_metadata="{URL}", error="invalid_token"'
            )

    run(body)


def test_without_issuers_the_challenge_is_bare_and_a_token_is_just_a_wrong_key() -> None:
    async def body() -> None:
        world = World()
        exchange = await world.post(
            ask("tools/list"), role="", authorization=f"Bearer {token().decode()}"
        )
        assert (exchange.status, exchange.header("www-authenticate")) == (401, "Bearer")

    run(body)


def test_a_token_counts_in_one_authorization_header_only() -> None:
    async def body() -> None:
        async with Tokens() as made:
            good = b"Bearer " + token(made.body())

            def scope(*values: bytes, query: bytes = b"") -> dict[str, Any]:
                headers = [(b"authorization", each) for each in values]
                return {"headers": headers, "query_string": query}

            async def status(*values: bytes, query: bytes = b"") -> int:
                try:
                    await identify(keys(), made.gate, scope(*values, query=query))
                except TidegateError as error:
                    return error.status
                return 200

            assert await status(good) == 200
            assert await status(good, good) == 401
            assert await status(good, b"Bearer " + TOKENS["viewer"].encode()) == 401
            assert await status(b"Basic " + good[7:]) == 401
            assert await status(good[7:]) == 401
            in_query = b"access_token=" + good[7:]
            assert await status(query=in_query) == 401
            assert await status(good, query=in_query) == 400
            assert await status(b"Bearer eyJ" + b"a" * 20_000 + b".b.c") == 401

    run(body)


def test_a_new_key_of_the_issuer_is_found_by_the_first_token_that_it_signed() -> None:
    async def body() -> None:
        async with Tokens() as made:
            made.published.names = ("ec-next",)
            exchange = await made.post(token(made.body(), key="ec-next"))
            assert exchange.status == 200
            assert (await made.post(token(made.body()))).status == 401
            assert len(made.published.fetches) == 2

    run(body)


def test_a_flood_of_unknown_keys_is_refused_with_one_fetch() -> None:
    async def body() -> None:
        async with Tokens() as made:
            texts = [
                token(made.body(), header={"kid": f"unknown-{number}"}) for number in range(100)
            ]
            answers = await asyncio.gather(*(made.post(text) for text in texts))
            assert {answer.status for answer in answers} == {401}
            assert len(made.published.fetches) == 2
            assert (await made.post(token(made.body()))).status == 200

    run(body)


def test_in_an_outage_known_keys_hold_and_what_cannot_be_judged_is_503() -> None:
    async def body() -> None:
        async with Tokens() as made:
            made.published.fails = FetchFailed("no_connection")
            known = await made.post(token(made.body()))
            unknown = await made.post(token(made.body(), key="ec-next"))
            assert (known.status, unknown.status) == (200, 503)
            assert unknown.header("retry-after") is not None
            assert value(unknown)["error"]["data"]["reason"] == "gateway.identity_unavailable"
            assert (await made.post(token(made.body(aud="x")))).status == 401
            await passing(3700.0)
            assert (await made.post(token(made.body()))).status == 503
            assert (await made.world.post(call("get_status"))).status == 200

    run(body)


def test_before_the_first_keys_are_there_a_token_waits_for_the_fetch_that_runs() -> None:
    async def body() -> None:
        made = Tokens(opened=False)
        made.published.takes_s = 2.0
        await made.rings.open()
        await passing(0.1)
        assert (await made.post(token(made.body()))).status == 200
        assert len(made.published.fetches) == 1
        await made.rings.close()

    run(body)


def test_a_legacy_session_is_of_one_issuer_subject_and_client() -> None:
    async def body() -> None:
        async with Tokens() as made:
            world = made.world
            other = replace(SETTINGS, issuer="https://other.example")
            made.rings.retain((SETTINGS, other))
            await passing(0.1)
            gate = TokenGate({ISSUER: SETTINGS, other.issuer: other}, made.rings, URL)
            world.policy = replace(world.policy, tokens=gate)

            async def script(asked: Any) -> None:
                result = {"protocolVersion": "2025-11-25", "capabilities": {}}
                asked.result(result, mcp_session_id="theirs")

            world.transport.script = script
            params = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            }
            mine = made.body(client_id="desk")
            began = await made.post(token(mine), ask("initialize", **params))
            session = began.header("mcp-session-id")
            assert session

            async def status(body: dict[str, object]) -> int:
                text = token(body)
                return (await made.post(text, ask("ping"), mcp_session_id=session)).status

            assert await status(mine) == 200
            assert await status({**mine, "exp": made.clock.now_s() + 9}) == 200
            assert await status({**mine, "sub": "adam"}) == 404
            assert await status({**mine, "tenant": "other"}) == 404
            assert await status({**mine, "client_id": "elsewhere"}) == 404
            assert await status({**mine, "iss": other.issuer}) == 404
            key = await world.post(ask("ping"), mcp_session_id=session)
            assert key.status == 404

    run(body)


def test_the_metadata_names_the_audience_and_its_issuers_and_nothing_else() -> None:
    other = replace(SETTINGS, issuer="https://second.example", roles_claim="scope")
    api = replace(SETTINGS, issuer="https://third.example", audience="https://gateway.example")
    bare = replace(SETTINGS, issuer="https://fourth.example", audience="tidegate")
    made = metadata_of((bare, SETTINGS, other, api), "/mcp", ("viewer", "admin"))
    root = b"/.well-known/oauth-protected-resource"
    assert made.url == URL
    assert sorted(made.documents) == [root, root + b"/mcp"]
    assert json.loads(made.documents[root + b"/mcp"]) == {
        "resource": SETTINGS.audience,
        "authorization_servers": [ISSUER, other.issuer],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["viewer", "admin"],
    }
    assert json.loads(made.documents[root]) == {
        "resource": "https://gateway.example",
        "authorization_servers": [api.issuer],
        "bearer_methods_supported": ["header"],
    }


@pytest.mark.parametrize(
    "audience", ["tidegate", "urn:x", "https://", 'https://a.example/"x', "https://a.example/?q=1"]
)
def test_an_audience_that_is_no_plain_address_has_no_document(audience: str) -> None:
    made = metadata_of((replace(SETTINGS, audience=audience),), "/mcp", ())
    assert (dict(made.documents), made.url) == ({}, None)
