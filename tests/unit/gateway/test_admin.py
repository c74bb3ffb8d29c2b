"""Does the second listener only report, and only to those who may ask?"""

import asyncio
import json
from dataclasses import dataclass
from itertools import product

import pytest

from tidegate.errors import Forbidden, Misdirected, TidegateError
from tidegate.gateway.admin import Admin, Guard, IssuersHealth, Readiness
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.respond import Scope
from tidegate.gateway.target_rows import TargetsReport
from tidegate.testing.asgi import ASGIClient, ASGIExchange

TOKEN = "admin-" + "token"
PATHS = ("/healthz", "/readyz", "/metrics", "/targets")


@dataclass
class Records:
    degraded: bool = False
    dropped: int = 0


def nobody_refused(_scope: Scope) -> TidegateError | None:
    return None


def readiness(records: Records | None = None) -> Readiness:
    return Readiness(
        records=records or Records(), store_degraded=lambda: False, demo=True, revision="3fa4"
    )


def no_targets() -> TargetsReport:
    return TargetsReport(revision="3fa4", targets=())


def admin(
    token: str | None = None,
    *,
    ready: Readiness | None = None,
    metrics: Metrics | None = None,
    guard: Guard = nobody_refused,
) -> Admin:
    return Admin(
        ready or readiness(), metrics=metrics, targets=no_targets, token=token, guard=guard
    )


def ask(
    app: Admin, path: str, *, method: str = "GET", headers: tuple[tuple[str, str], ...] = ()
) -> ASGIExchange:
    return asyncio.run(ASGIClient(app).request(method, path, headers=headers))


@pytest.mark.parametrize(
    ("path", "content_type", "begins"),
    [
        ("/healthz", "application/json", b'{"alive":true}'),
        ("/readyz", "application/json", b'{"ready":true,"reasons":[],'),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8", b"# HELP "),
        ("/targets", "application/json", b'{"revision":"3fa4","missing":[],"targets":[]}'),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_four_answers(path: str, content_type: str, begins: bytes, method: str) -> None:
    answer = ask(admin(metrics=Metrics()), path, method=method)
    assert answer.status == 200
    assert answer.header("content-type") == content_type
    assert answer.header("cache-control") == "no-store"
    assert answer.body.startswith(begins)


@pytest.mark.parametrize("path", ["/", "/healthz/", "/metrics/x", "/v1/chat/completions", "/mcp"])
def test_every_other_path_is_404_in_the_envelope(path: str) -> None:
    answer = ask(admin(), path)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"]) == (404, "gateway.not_found")
    assert error["request_id"] == answer.header("x-request-id")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_every_other_method_is_405_and_says_which_are_allowed(path: str, method: str) -> None:
    answer = ask(admin(), path, method=method)
    assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")


def test_every_answer_has_a_request_id_of_its_own() -> None:
    app = admin(TOKEN, metrics=Metrics())
    ids = [
        ask(app, path, headers=headers).header("x-request-id")
        for path in (*PATHS, "/other")
        for headers in ((), (("authorization", f"Bearer {TOKEN}"),))
    ]
    assert len({str(i) for i in ids}) == 10
    assert all(i is not None and len(i) == 32 for i in ids)


AUTHORIZED = [
    (("authorization", f"Bearer {TOKEN}"),),
    (("Authorization", f"bearer {TOKEN}"),),
    (("authorization", f"BEARER  {TOKEN} "),),
]
NOT_AUTHORIZED = [
    (),
    (("authorization", TOKEN),),
    (("authorization", f"Basic {TOKEN}"),),
    (("authorization", "Bearer"),),
    (("authorization", "Bearer "),),
    (("authorization", f"Bearer {TOKEN}x"),),
    (("authorization", f"Bearer {TOKEN[:-1]}"),),
    (("authorization", f"Bearer {TOKEN.upper()}"),),
    (("authorization", f"Bearer {TOKEN}, Bearer {TOKEN}"),),
    (("authorization", "Bearer \xff"),),
    (("authorization", f"Bearer {TOKEN}"), ("authorization", f"Bearer {TOKEN}")),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", AUTHORIZED)
def test_with_the_token_all_of_them_answer(path: str, headers: tuple[tuple[str, str], ...]) -> None:
    assert ask(admin(TOKEN, metrics=Metrics()), path, headers=headers).status == 200


@pytest.mark.parametrize("path", [*PATHS, "/other"])
@pytest.mark.parametrize("headers", NOT_AUTHORIZED)
def test_without_the_token_nothing_is_told(path: str, headers: tuple[tuple[str, str], ...]) -> None:
    answer = ask(admin(TOKEN), path, headers=headers)
    assert (answer.status, answer.header("www-authenticate")) == (401, "Bearer")
    assert json.loads(answer.body)["error"]["code"] == "gateway.unauthenticated"


@pytest.mark.parametrize("refusal", [Misdirected(), Forbidden()])
def test_the_guard_comes_before_everything_else(refusal: TidegateError) -> None:
    seen: list[object] = []

    def guard(scope: Scope) -> TidegateError | None:
        seen.append(scope["path"])
        return refusal

    app = admin(TOKEN, guard=guard)
    assert [ask(app, path).status for path in (*PATHS, "/other")] == [refusal.status] * 5
    assert seen == [*PATHS, "/other"]


def test_metrics_that_are_switched_off_are_not_there() -> None:
    assert ask(admin(), "/metrics").status == 404


@pytest.mark.parametrize(
    ("draining", "store", "records", "reload_failed", "clock", "resting"),
    list(product([False, True], repeat=6)),
)
def test_readiness_names_every_reason(
    draining: object,
    store: object,
    records: object,
    reload_failed: object,
    clock: object,
    resting: object,
) -> None:
    ready = Readiness(
        records=Records(degraded=bool(records), dropped=5),
        store_degraded=lambda: bool(store),
        clock_ahead_s=lambda: -3600.00049 if clock else 0.0,
        resting_routes=lambda: ["fast"] if resting else [],
        revision="3fa4",
    )
    ready.draining, ready.reload_failed = bool(draining), bool(reload_failed)
    answer = ask(admin(ready=ready), "/readyz")
    unready = bool(draining or store or records)
    reasons = [
        name
        for name, holds in (
            ("draining", draining),
            ("store_degraded", store),
            ("records_degraded", records),
            ("config_reload_failed", reload_failed),
            ("wall_clock_stepped", clock),
            ("route_resting", resting),
        )
        if holds
    ]
    assert answer.status == (503 if unready else 200)
    assert json.loads(answer.body) == {
        "ready": not unready,
        "reasons": reasons,
        "config": {"revision": "3fa4", "last_reload": "failed" if reload_failed else "ok"},
        "store": {"degraded": bool(store)},
        "clock": {"ahead_s": -3600.0 if clock else 0.0},
        "routes": {"resting": ["fast"] if resting else []},
        "issuers": {"without_keys": []},
        "tenant_rules": {"broken": []},
        "records": {"degraded": bool(records), "dropped": 5},
        "draining": bool(draining),
        "demo": False,
    }


@pytest.mark.parametrize("serves", [False, True])
def test_issuers_without_keys_are_named_and_make_unready_only_who_can_identify_nobody(
    serves: object,
) -> None:
    ready = readiness()
    ready.issuers = lambda: IssuersHealth(("https://id.example",), serves=bool(serves))
    answer = ask(admin(ready=ready), "/readyz")
    report = json.loads(answer.body)
    assert answer.status == (200 if serves else 503)
    assert (report["ready"], report["reasons"]) == (serves, ["issuer_keys_missing"])
    assert report["issuers"] == {"without_keys": ["https://id.example"]}


@pytest.mark.parametrize("records", [False, True])
def test_a_store_that_is_away_is_named_and_makes_unready_only_who_cannot_serve_without_it(
    records: object,
) -> None:
    ready = Readiness(
        records=Records(degraded=bool(records)),
        store_degraded=lambda: True,
        serves_without_store=lambda: True,
    )
    report = ready.report()
    assert report["ready"] is not bool(records)
    assert report["reasons"] == ["store_degraded", *(["records_degraded"] if records else [])]
    assert report["store"] == {"degraded": True}


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
def test_other_scopes_are_left_alone(kind: str) -> None:
    async def never(*_: object) -> dict[str, object]:
        raise AssertionError

    asyncio.run(admin()({"type": kind}, never, never))  # type: ignore[arg-type]
