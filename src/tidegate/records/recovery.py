"""What did processes that died leave behind, and what becomes of it?

Lives here: which of them are dead, the intents that they put on disk and did not bring into the
database, and the entries `lost` for what they left open; within one transaction of the caller.
Does not live here: who still runs (liveness), the files of intents (journal).
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate.records.chain import Head
from tidegate.records.entries import canonical
from tidegate.records.journal import Journaled
from tidegate.records.rows import Draft, OpenRequest, insert, note_closed, note_open, open_of

IsRunning = Callable[[str], bool]
LeftBehind = Callable[[str], Sequence[Journaled]]


@dataclass(frozen=True, slots=True)
class Recovered:
    """The processes found dead, each with its number of lost requests, and an end for each."""

    dead: dict[str, int]
    ends: list[Draft]


def recover(
    connection: sqlite3.Connection,
    own: tuple[str, str],
    now_ms: int,
    is_running: IsRunning,
    left_behind: LeftBehind,
    journals: Sequence[str],
) -> Recovered:
    """Nothing of the dead is open afterwards; the caller adds `ends` to its own chain.

    `own`: the node and the boot of the caller. `journals`: the processes of which there are files.
    """
    node, boot = own
    others = connection.execute(
        "SELECT boot FROM boots WHERE boot <> ? AND (ended_ms IS NULL OR boot IN"
        " (SELECT boot FROM open_requests) OR boot IN (SELECT value FROM json_each(?)))"
        " ORDER BY began_ms, boot",
        (boot, canonical(list(journals))),
    ).fetchall()
    dead, ends = {}, []
    for (other,) in others:
        if is_running(other):
            continue
        _take_over(connection, node, other, left_behind(other))
        lost = open_of(connection, other)
        ends += [_lost(other, found, now_ms) for found in lost]
        note_closed(connection, other, [found.request_id for found in lost])
        dead[other] = len(lost)
    connection.executemany(
        "UPDATE boots SET ended_ms = ? WHERE boot = ? AND ended_ms IS NULL",
        [(now_ms, each) for each in dead],
    )
    return Recovered(dead, ends)


def _take_over(
    connection: sqlite3.Connection, node: str, boot: str, left: Sequence[Journaled]
) -> None:
    """The intents of a dead process that are on disk and not in its chain go there.

    Not those that are older than everything that is kept: they were in it, and have been pruned.
    """
    oldest_ms = _oldest_ms(connection, boot)
    drafts = [
        Draft("intent", intent.request_id, intent.at_ms, intent.body)
        for intent in left
        if intent.at_ms >= oldest_ms and not _has_intent(connection, boot, intent.request_id)
    ]
    if drafts:
        insert(connection, node, boot, drafts, _head_of(connection, boot))
        opened = [OpenRequest(d.request_id, d.at_ms, "intent", d.body) for d in drafts]
        note_open(connection, boot, opened)


def _oldest_ms(connection: sqlite3.Connection, boot: str) -> int:
    """When the oldest entry was made that is kept, if any of this chain was pruned; else 0."""
    pruned = connection.execute("SELECT pruned_seq FROM boots WHERE boot = ?", (boot,)).fetchone()
    if pruned is None or pruned[0] == 0:
        return 0
    oldest = connection.execute("SELECT at_ms FROM entries ORDER BY id LIMIT 1").fetchone()
    return 0 if oldest is None else int(oldest[0])


def _has_intent(connection: sqlite3.Connection, boot: str, request_id: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM entries WHERE request_id = ? AND boot = ? AND kind = 'intent'",
        (request_id, boot),
    )
    return found.fetchone() is not None


def _head_of(connection: sqlite3.Connection, boot: str) -> Head:
    last = connection.execute(
        "SELECT seq, hash FROM entries WHERE boot = ? ORDER BY seq DESC LIMIT 1", (boot,)
    ).fetchone()
    if last is None:
        last = connection.execute(
            "SELECT pruned_seq, pruned_hash FROM boots WHERE boot = ?", (boot,)
        ).fetchone()
    return Head(*last)


def _lost(boot: str, found: OpenRequest, now_ms: int) -> Draft:
    body = canonical({"lost_boot": boot, "last_state": found.state, "last_ms": found.at_ms})
    # Both are objects in canonical form; the known part keeps its own keys under "known".
    return Draft("lost", found.request_id, now_ms, f'{{"known":{found.body},{body[1:]}')


__all__ = ["IsRunning", "LeftBehind", "Recovered", "recover"]
