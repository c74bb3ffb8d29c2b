"""What does an operator hear of a target whose state changes?

Lives here: one log line and one count for each change of a breaker and each rest, and the alerts
for what only an operator can mend. Does not live here: the changes themselves (routing.failover),
the state between them (target_rows), what becomes of a single attempt (attempts).
"""

import logging

from tidegate.clock import Clock
from tidegate.gateway.metrics import Metrics
from tidegate.routing.failover import Failover, Step, Try
from tidegate.routing.history import Change, ChangeKind
from tidegate.routing.plan import Target
from tidegate.routing.targets import TargetKey, key_of

logger = logging.getLogger(__name__)

_ALERT_EVERY_S = 60.0
_STATE: dict[ChangeKind, str] = {"opened": "open", "probe": "half_open", "closed": "closed"}
_EVENT: dict[ChangeKind, tuple[str, int]] = {
    "opened": ("breaker_opened", logging.WARNING),
    "probe": ("breaker_half_open", logging.INFO),
    "closed": ("breaker_closed", logging.INFO),
    "cooling": ("target_cooling", logging.INFO),
}


class TargetWatch:
    """Tells what walks have changed. For one event loop.

    Alerts are counted each time and logged once a minute for each target: while a key is revoked,
    or a bill unpaid, every probe meets the same again. Its memory is bounded by the targets of
    the configurations that this process has seen.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._alerted_at_s: dict[tuple[TargetKey, str], float] = {}

    def note(
        self,
        failover: Failover,
        request_id: str,
        *,
        asked: Target | None = None,
        then: Step | None = None,
    ) -> None:
        """Tell what `failover` has changed since it was last looked at.

        `asked` is the target whose attempt has just ended, `then` the step that follows it.
        """
        changes, failover.changes = failover.changes, []
        for change in changes:
            self._tell(change, request_id)
        alert, failover.alert = failover.alert, ""
        if alert and asked is not None:
            self._alert(alert, asked, request_id)
        if isinstance(then, Try):
            kind = "same_target" if then.again else "failover"
            self._metrics.retry(provider=then.target.provider, kind=kind)

    def _tell(self, change: Change, request_id: str) -> None:
        provider = change.target.provider
        outcome, _, cause = change.reason.partition(",")
        event, level = _EVENT[change.kind]
        if change.kind == "cooling":
            self._metrics.cooled(provider=provider, reason=outcome)
        else:
            self._metrics.breaker_changed(provider=provider, state=_STATE[change.kind])
        fields: dict[str, object] = {"request_id": request_id, **_names(change.target)}
        if outcome:
            fields["outcome"] = outcome
        if cause:
            fields["reason"] = cause
        if change.pause_s > 0:
            fields["pause_s"] = round(change.pause_s, 3)
        logger.log(level, event, extra=fields)

    def _alert(self, alert: str, target: Target, request_id: str) -> None:
        self._metrics.alerted(provider=target.provider, kind=alert)
        key, now_s = (key_of(target), alert), self._clock.monotonic_s()
        if now_s - self._alerted_at_s.get(key, float("-inf")) < _ALERT_EVERY_S:
            return
        self._alerted_at_s[key] = now_s
        logger.error(alert, extra={"request_id": request_id, **_names(target)})


def _names(target: Target) -> dict[str, object]:
    """What names a target in the log; a credential by its place in the file and its id."""
    fields: dict[str, object] = {"provider": target.provider}
    if target.upstream_model is not None:
        fields["model"] = target.upstream_model
    if target.credential_id:
        fields |= {"credential": target.credential, "credential_id": target.credential_id}
    return fields


__all__ = ["TargetWatch"]
