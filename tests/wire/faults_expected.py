"""What does a client see of each failure of the primary, who pays, and what does the breaker learn?

The table that the matrix runs and the page docs/failover.md shows. The backup is well in all of it,
and both providers share a credential. Written by hand: what comes out of a run is no reason to
change a row, only the reasons given beside it are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

INTERRUPTED = "gateway.upstream_interrupted"
REJECTED = "gateway.upstream_rejected_request"
CREDENTIAL = "gateway.upstream_credential"
CONTEXT = "context_length_exceeded"
FILTER = "content_filter"
FAILED = "gateway.all_providers_failed"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one request leaves.

    `text` says whose words arrive: "primary", "backup", "half" of the primary's, or "" for none.
    `charged` is "usage" for what the provider that answered has reported, "counted" for the prompt
    as estimated and the text that arrived as counted, "" for nothing.
    `verdict` is what the breaker of the primary learns: "good", "bad", "" for nothing, "rests" for
    nothing but that it cools, "open" when it opens at once.
    """

    status: int
    attempts: str
    code: str | None
    text: str
    calls: tuple[int, int]
    charged: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Row:
    """One behavior of the primary, for a stream and for a plain answer.

    `waits`: it ends by a deadline. `options` go beside the behavior.
    """

    stream: Seen
    plain: Seen
    waits: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def seen(self, *, stream: bool) -> Seen:
        return self.stream if stream else self.plain


def good(charged: str = "usage") -> Seen:
    """The primary answers."""
    return Seen(200, "primary:ok", None, "primary", (1, 0), charged, "good")


def over(outcome: str, verdict: str = "bad", calls: int = 1) -> Seen:
    """The backup answers, and is paid for its own work alone."""
    attempts = f"primary:{outcome},backup:ok"
    return Seen(200, attempts, None, "backup", (calls, 1), "usage", verdict)


def stopped(status: int, code: str, outcome: str, verdict: str = "") -> Seen:
    """Nobody else is asked, and nothing is charged."""
    return Seen(status, f"primary:{outcome}", code, "", (1, 0), "", verdict)


_BROKEN = Seen(200, "primary:ok", INTERRUPTED, "half", (1, 0), "counted", "bad")
"""The first words have left: an error event ends what began, and they are charged."""


def both(seen: Seen, **more: Any) -> Row:
    """The same for a stream and a plain answer."""
    return Row(seen, seen, **more)


_DOWN = both(over("server_error"))
_LATE = both(over("timeout"), waits=True)
_COUNTED = good("counted")
ROWS: Mapping[str, Row] = MappingProxyType(
    {
        "ok": both(good()),
        "comments": both(good()),
        # It reports no usage in the stream.
        "odd-framing": Row(_COUNTED, good()),
        "no-prefill": both(good()),
        "wrong-content-type": both(good()),
        "no-done": both(good()),
        "no-finish": Row(_COUNTED, good()),
        "no-usage": both(_COUNTED),
        # No free answer, no negative one: figures that are none are as good as missing.
        "odd-usage": both(_COUNTED),
        # The client has its end mark and nobody waits any longer.
        "late-usage": Row(_COUNTED, good()),
        "400": both(stopped(400, REJECTED, "rejected")),
        "401": both(stopped(502, CREDENTIAL, "credential", "open")),
        "402": both(over("quota", "rests")),
        "403": both(stopped(502, CREDENTIAL, "forbidden")),
        # Neutral: with a name that is passed through any caller can provoke it.
        "404": both(over("not_found", "")),
        "408": both(over("transient", "")),
        "409": both(over("transient", "")),
        "413": both(stopped(400, CONTEXT, "context_too_long")),
        "422": both(stopped(400, REJECTED, "rejected")),
        "425": both(over("transient", "")),
        "429": both(over("rate_limited", "rests")),
        "429-retry-after": both(over("rate_limited", "rests")),
        "insufficient-quota": both(over("quota", "rests")),
        "low-credit": both(over("quota", "rests")),
        "context-length": both(stopped(400, CONTEXT, "context_too_long")),
        "content-filter": both(stopped(400, FILTER, "content_filter")),
        "500": _DOWN,
        "502": _DOWN,
        "503": _DOWN,
        "504": _DOWN,
        "520": _DOWN,
        "521": _DOWN,
        "522": _DOWN,
        "523": _DOWN,
        "524": _DOWN,
        "529": _DOWN,
        "status": _DOWN,
        # The status decides; its body gets a moment, and is only words.
        "slow-error": both(over("server_error"), waits=True),
        "flap": _DOWN,
        "malformed": both(over("malformed")),
        "html": Row(over("interrupted"), over("malformed")),
        # Not followed: the key would go wherever it points.
        "redirect": both(over("malformed")),
        "no-content": both(over("malformed")),
        "empty-object": Row(over("interrupted"), over("malformed")),
        "empty": Row(over("interrupted"), over("malformed")),
        "other-form": both(over("malformed")),
        "error-first": _DOWN,
        "created-then-error": both(over("quota", "rests")),
        "bad-chunk": Row(_BROKEN, over("malformed")),
        "bad-utf8": Row(_BROKEN, over("malformed")),
        # Whatever comes after the end mark is not passed on.
        "after-done": Row(_COUNTED, over("malformed")),
        "bomb": both(over("malformed")),
        "too-long": both(over("malformed")),
        "error-later": Row(_BROKEN, over("server_error")),
        "slow": _LATE,
        # Connecting has a clock of its own.
        "no-accept": both(over("unreachable", calls=0), waits=True),
        "hang": _LATE,
        "head-only": _LATE,
        "slow-first-token": _LATE,
        "role-only": _LATE,
        "dribble": _LATE,
        # Every word comes within the idle time; a document must be there as a whole.
        "trickle": Row(good(), over("timeout"), waits=True, options={"wait_s": 0.25}),
        "cut": Row(_BROKEN, over("unreachable")),
        "stall": Row(_BROKEN, over("timeout"), waits=True),
        "early-hints": both(good()),
        "until-close": both(good()),
        "refused": both(over("unreachable", calls=0)),
        "reset": both(over("unreachable")),
        "hang-up": both(over("unreachable")),
        "reset-later": Row(_BROKEN, over("unreachable")),
        "half-head": both(over("unreachable")),
        "slow-head": _LATE,
        "long-head": both(over("malformed")),
        "no-http": both(over("malformed")),
        "bad-frame": both(over("malformed")),
        "short-body": Row(_BROKEN, over("unreachable")),
        # Nothing below says that it is cut: only the missing finish reason does.
        "silent-cut": Row(_BROKEN, over("malformed")),
        "bad-coding": both(over("malformed")),
    }
)
"""By behavior of the primary, in the order of the table of the demo."""
