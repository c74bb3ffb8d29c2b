"""Which keys of a published set are used?"""

import json

import pytest

from tests.unit.identity.tokens import algorithms_here, jwk, jwks
from tidegate.identity.jwks_ring import KeyRing, RingTimes
from tidegate.identity.jwt_keys import MOST_KEYS, BrokenKeySet


def kids(*entries: dict[str, object]) -> list[str | None]:
    return [key.kid for key in algorithms_here().keys(jwks(jwk("ec", kid="good"), *entries))]


def test_keys_of_unknown_kinds_and_for_other_uses_are_passed_over() -> None:
    assert kids(
        {"kty": "AKP", "alg": "ML-DSA-44", "kid": "new"},
        {"kty": ["EC"], "kid": "odd"},
        {"kid": "bare"},
        jwk("ec-other", use="enc"),
        jwk("ec-other", key_ops=["sign"]),
        jwk("ec-other", key_ops="verify"),
        jwk("ec-other", alg="ES384"),
        jwk("ec-other", alg=5),
        jwk("ec-other", crv="P-384"),
        jwk("ec-other", crv="secp256k1"),
        jwk("ec-other", x="AAAA"),
        jwk("ec-other", x=jwk("ec")["x"]),
        jwk("ec-other", x=5),
        jwk("ec-other", d="AAAA"),
        {**jwk("ec-other"), "kid": 5},
        jwk("rsa", n="AQAB"),
        jwk("rsa", e="!"),
        jwk("rsa", n="x" * 5000),
        jwk("ed", x="AAAA"),
    ) == ["good"]


def test_keys_that_are_too_short_are_passed_over() -> None:
    assert kids(jwk("rsa-short"), jwk("rsa")) == ["good", "rsa"]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": [1, null, []]}',
        b'{"keys": [], "keys": []}',
        b"<html>",
        json.dumps({"keys": [{}] * (MOST_KEYS + 1)}).encode(),
        b'{"keys": ' + b"[" * 50 + b"]" * 50 + b"}",
    ],
)
def test_a_set_without_a_usable_key_is_refused_whole(document: bytes) -> None:
    with pytest.raises(BrokenKeySet):
        algorithms_here().keys(document)


def test_keys_hold_for_a_while_after_the_last_good_fetch_and_then_no_longer() -> None:
    ring, keys = KeyRing(RingTimes(keep_s=100.0)), algorithms_here().keys(jwks(jwk("ec")))
    assert (ring.standing(0.0), ring.keys(0.0)) == ("missing", ())
    ring.failed()
    assert ring.standing(1.0) == "missing"
    ring.loaded(keys, 10.0)
    assert (ring.standing(10.0), ring.keys(10.0)) == ("fresh", keys)
    ring.failed()
    assert (ring.standing(109.9), ring.keys(109.9)) == ("kept", keys)
    assert (ring.standing(110.0), ring.keys(110.0)) == ("expired", ())
    ring.loaded(keys, 200.0)
    assert ring.standing(200.0) == "fresh"


def test_fetches_that_fail_come_rarer_and_never_stop() -> None:
    ring = KeyRing(RingTimes())
    assert ring.next_in_s == 300.0
    waits = []
    for _ in range(2000):
        ring.failed()
        waits.append(ring.next_in_s)
    assert waits[:6] == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    assert set(waits[6:]) == {60.0}


def test_unknown_keys_ask_for_one_fetch_in_the_time_of_cooling_down() -> None:
    ring = KeyRing(RingTimes(cooldown_s=30.0))
    asked = [second for second in range(100) if ring.ask(float(second))]
    assert asked == [0, 30, 60, 90]
