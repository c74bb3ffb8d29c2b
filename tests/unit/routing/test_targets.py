"""The memory about targets: what is shared, what survives, what is shown."""

from tidegate.routing import (
    BreakerSettings,
    Failover,
    Outcome,
    Route,
    State,
    Target,
    Targets,
    TargetSnapshot,
    Verdict,
)

SETTINGS = BreakerSettings(consecutive=1, open_s=5.0)


def trip(targets: Targets, target: Target) -> None:
    breaker = targets.state(target, SETTINGS).breaker
    permit = breaker.permit(0.0)
    assert permit is not None
    breaker.record(permit, Verdict.FAILURE, 0.0)


def test_routes_share_a_target_whatever_its_weight_and_window() -> None:
    targets = Targets()
    trip(targets, Target("a", weight=3, context_tokens=5))
    assert targets.state(Target("a"), SETTINGS).breaker.state(0.0) is State.OPEN
    for other in (Target("b"), Target("a", 1), Target("a", upstream_model="m")):
        assert targets.state(other, SETTINGS).breaker.state(0.0) is State.CLOSED


def test_a_replaced_key_does_not_inherit_the_rest_of_the_old_one() -> None:
    targets = Targets()
    targets.state(Target("a", credential_id="old"), SETTINGS).cool(0.0, 300.0)
    assert targets.state(Target("a", credential_id="old"), SETTINGS).is_cooling(299.0)
    assert not targets.state(Target("a", credential_id="new"), SETTINGS).is_cooling(0.0)


def test_a_reload_keeps_the_state_and_judges_it_by_the_new_settings() -> None:
    targets = Targets()
    trip(targets, Target("a"))
    again = targets.state(Target("a"), BreakerSettings(open_s=99.0))
    assert again.breaker.state(4.0) is State.OPEN
    assert again.breaker.settings.open_s == 99.0


def test_retain_forgets_what_the_configuration_no_longer_names() -> None:
    targets = Targets()
    trip(targets, Target("a"))
    trip(targets, Target("b"))
    targets.retain([Target("b"), Target("c")])
    assert [shot.provider for shot in targets.snapshot(0.0)] == ["b"]


def test_a_longer_rest_is_not_shortened() -> None:
    state = Targets().state(Target("a"), SETTINGS)
    state.cool(0.0, 30.0)
    state.cool(1.0, 5.0)
    assert state.wait_s(10.0) == 20.0


def test_the_snapshot_tells_state_rest_and_wait() -> None:
    targets = Targets()
    targets.state(Target("ok"), SETTINGS)
    trip(targets, Target("sick", upstream_model="m", credential_id="12ab"))
    targets.state(Target("busy"), SETTINGS).cool(0.0, 30.0)
    assert targets.snapshot(1.0) == (
        TargetSnapshot("ok", None, "#0", State.CLOSED, 0.0, 0.0),
        TargetSnapshot("sick", "m", "12ab", State.OPEN, 0.0, 4.0, "consecutive", share=0.0),
        TargetSnapshot("busy", None, "#0", State.CLOSED, 29.0, 29.0),
    )
    assert targets.snapshot(5.0)[1].state is State.HALF_OPEN


def test_a_look_shows_one_target_and_leaves_no_trace_of_it() -> None:
    targets = Targets()
    trip(targets, Target("sick"))
    assert targets.look(Target("sick"), 1.0) == targets.snapshot(1.0)[0]
    assert targets.look(Target("idle", credential_id="12ab"), 1.0) == TargetSnapshot(
        "idle", None, "12ab"
    )
    assert [shot.provider for shot in targets.snapshot(1.0)] == ["sick"]


def test_a_walk_across_a_reload_does_not_bring_a_removed_target_back() -> None:
    targets, gone, kept = Targets(), Target("gone"), Target("kept")
    of = Route("r", (gone, kept))
    running = Failover(of, targets, started_s=0.0, total_s=10.0)
    running.start(0.0)
    targets.retain([kept])
    # The request goes on with what it began with, also where it begins only now.
    running.on(Outcome.RATE_LIMITED, 1.0, retry_after_s=30.0)
    running.commit()
    running.finished(Outcome.OK, 2.0)
    assert running.header == "gone:rate_limited,kept:ok"
    late = Failover(of, targets, started_s=1.0, total_s=10.0)
    late.start(1.0)
    late.on(Outcome.SERVER_ERROR, 1.0)
    late.cancelled(1.0)
    assert [shot.provider for shot in targets.snapshot(2.0)] == ["kept"]
    assert targets.snapshot(2.0)[0].successes == 1


def test_a_target_that_comes_back_with_a_later_reload_starts_afresh() -> None:
    targets, target = Targets(), Target("a")
    old = targets.state(target, SETTINGS)
    old.cool(0.0, 300.0)
    targets.retain([])
    assert targets.state(target, SETTINGS) is not old
    targets.retain([target])
    state = targets.state(target, SETTINGS)
    assert state is targets.state(target, SETTINGS)
    assert state.wait_s(0.0) == 0.0


def test_each_route_judges_a_shared_target_by_its_own_settings() -> None:
    targets = Targets()
    strict = Route("strict", (Target("a"),), breaker=BreakerSettings(consecutive=1))
    calm = Route("calm", (Target("a"),), breaker=BreakerSettings(consecutive=9, ratio=2.0))
    first = Failover(calm, targets, started_s=0.0, total_s=10.0)
    first.start(0.0)
    second = Failover(strict, targets, started_s=0.0, total_s=10.0)
    second.start(0.0)
    first.on(Outcome.TIMEOUT, 1.0)
    assert targets.look(Target("a"), 1.0).state is State.CLOSED
    second.on(Outcome.TIMEOUT, 1.0)
    assert targets.look(Target("a"), 1.0).state is State.OPEN


def test_a_provider_that_moved_starts_afresh_whatever_still_runs_against_the_old_one() -> None:
    targets = Targets()
    old, moved = (
        Target("a", address="http://old.example"),
        Target("a", address="http://new.example"),
    )
    trip(targets, old)
    targets.retain([moved])
    assert targets.snapshot(1.0) == ()
    state = targets.state(moved, SETTINGS)
    assert state.breaker.state(1.0) is State.CLOSED
    running = targets.state(old, SETTINGS)
    running.cool(1.0, 300.0)
    assert targets.state(moved, SETTINGS) is state
    assert [shot.cooling_s for shot in targets.snapshot(1.0)] == [0.0]


def test_a_reload_that_moves_nobody_keeps_what_is_known() -> None:
    targets, target = Targets(), Target("a", address="http://a.example")
    trip(targets, target)
    targets.retain([Target("a", address="http://a.example", weight=7)])
    assert targets.state(target, SETTINGS).breaker.state(1.0) is State.OPEN


def test_an_address_stands_in_no_text_about_a_target() -> None:
    assert "example" not in repr(
        Target("a", address="http://a.example", parameters={"k": "example"})
    )
