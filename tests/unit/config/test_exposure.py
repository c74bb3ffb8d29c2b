import pytest

from tests.unit.config.corpus import ENVIRON, VALID, load
from tidegate.config import (
    Overrides,
    exposure_problems,
    is_loopback,
    load_config,
    load_config_text,
    missing_packages,
    serving_problems,
)

EVERYWHERE = "0.0.0.0"  # noqa: S104 - the address that is to be refused


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("LocalHost", True),
        (EVERYWHERE, False),
        ("::", False),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("gateway.example", False),
        ("localhost.example", False),
        ("127.1", False),
        ("", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, *, answer: bool) -> None:
    assert is_loopback(host) is answer


def test_the_demo_world_may_be_served_on_loopback_only() -> None:
    assert serving_problems(load_config(None, {})) == ()
    exposed = load_config(None, {}, overrides=Overrides(host=EVERYWHERE))
    assert [problem.path for problem in exposure_problems(exposed)] == [
        "identity.keys[0]",
        "identity.keys[1]",
        "identity.keys[2]",
    ]


def test_a_demo_key_in_a_file_is_refused_also_when_only_its_digest_stands_there() -> None:
    digest = next(key.digest for key in load_config(None, {}).identity.keys)
    text = f"identity: {{ keys: [{{ sha256: {digest}, principal: acme }}] }}\n"
    (problem,) = exposure_problems(
        load_config_text(text, {}, name="f", overrides=Overrides(host=EVERYWHERE))
    )
    assert str(problem) == (
        "f:1:20: identity.keys[0]: everybody knows this demo key, and the listener is not on "
        "loopback: replace it by a key of your own, or listen on 127.0.0.1"
    )


def test_an_anonymous_principal_is_refused_off_loopback() -> None:
    text = "identity: { anonymous: { principal: guest } }\n"
    assert exposure_problems(load_config_text(text, {})) == ()
    config = load_config_text(text, {}, overrides=Overrides(host="::"))
    assert [problem.path for problem in exposure_problems(config)] == ["identity.anonymous"]


def test_a_new_configuration_is_judged_by_the_address_that_is_listened_on() -> None:
    text = "server: { host: 127.0.0.1 }\nidentity: { anonymous: { principal: guest } }\n"
    config = load_config_text(text, {})
    assert serving_problems(config) == ()
    for address in (EVERYWHERE, "::", "10.0.0.1"):
        found = serving_problems(config, listening_on=address)
        assert [problem.path for problem in found] == ["identity.anonymous"]
    assert serving_problems(config, listening_on="::1") == ()
    exposed = load_config_text(text, {}, overrides=Overrides(host=EVERYWHERE))
    assert serving_problems(exposed, listening_on="127.0.0.1") != ()


def test_an_admin_listener_off_loopback_needs_a_token() -> None:
    text = "server: {{ admin: {{ host: 10.0.0.1, token: {} }} }}\n"
    config = load_config_text(text.format("null"), {})
    assert [problem.path for problem in exposure_problems(config)] == ["server.admin.host"]
    assert exposure_problems(load_config_text(text.format("'${env:ADMIN_TOKEN}'"), ENVIRON)) == ()


@pytest.mark.parametrize("token", ["viewer-token-xyz", "admin-token-abc", "demo-backend-token"])
def test_a_published_token_protects_no_listener(token: str) -> None:
    key = f"identity: {{ keys: [{{ key: {token}, principal: acme }}] }}\n"
    exposed = load_config_text(key, {}, overrides=Overrides(host=EVERYWHERE))
    assert [problem.path for problem in exposure_problems(exposed)] == ["identity.keys[0]"]
    text = f"server: {{ admin: {{ host: 10.0.0.1, token: {token} }} }}\n"
    config = load_config_text(text, {})
    assert [problem.path for problem in exposure_problems(config)] == ["server.admin.token"]
    at_home = load_config_text(text.replace("10.0.0.1", "127.0.0.1"), {})
    assert exposure_problems(at_home) == ()


def test_a_careful_file_may_be_served_everywhere() -> None:
    careful = next(path for path in VALID if path.stem == "off_loopback")
    assert serving_problems(load(careful)) == ()


def test_what_this_release_cannot_do_is_a_reason_not_to_serve() -> None:
    later = next(path for path in VALID if path.stem == "not_in_effect")
    assert [problem.path for problem in serving_problems(load(later))] == [
        "providers.primary.dialect",
    ]
    assert exposure_problems(load(later)) == ()


def test_a_store_whose_package_is_missing_is_a_reason_not_to_serve() -> None:
    on_redis = load_config_text(
        "store: { url: 'rediss://redis.example/0' }\n", {}, name="file.yaml"
    )
    assert [str(one) for one in missing_packages(on_redis, has=lambda _: False)] == [
        "file.yaml:1:15: store.url: the package for Redis is not installed"
        ": pip install 'tidegate[redis]'"
    ]
    assert missing_packages(on_redis, has=lambda name: name == "redis") == ()
    assert missing_packages(load_config_text("{}", {}), has=lambda _: False) == ()
