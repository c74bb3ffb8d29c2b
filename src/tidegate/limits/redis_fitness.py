"""May this server keep the books?

Lives here: a connection that may be used: what is asked of a server before it is, at the start
and after each lost one, and the words for what is wrong with it. Does not live here: whether its
books are those that this process knows (redis), how a connection is made (redis_line).
"""

import logging
import re
from collections.abc import Awaitable, Callable

from tidegate.limits.redis_line import DriverMissing, ErrorReply, Line, LineLost, dial
from tidegate.limits.redis_pipe import ask
from tidegate.limits.redis_script import command

logger = logging.getLogger(__name__)

OLDEST = (6, 2)

_MEANINGS = {
    "AuthenticationError": "it refuses this user and password",
    "AuthenticationWrongNumberOfArgsError": "it refuses this user and password",
    "NOAUTH": "it asks for a password, and the address has none",
    "AuthenticationRequired": "it asks for a password, and the address has none",
    "NoPermissionError": "this user may not run the commands that limits need",
    "NOPERM": "this user may not run the commands that limits need",
    "READONLY": "it is a replica; name the primary",
    "ReadOnlyError": "it is a replica; name the primary",
    "ResponseError": "it refuses the database number of the address",
    "LOADING": "it is still reading its data",
    "BusyLoadingError": "it is still reading its data",
    "OOM": "its memory is full",
    "OutOfMemoryError": "its memory is full",
    "ConnectionRefusedError": "nothing listens there",
    "gaierror": "its host name is not known",
    "SSLCertVerificationError": "its certificate is not trusted here",
    "SSLError": "it does not speak TLS as we do",
    "TimeoutError": "it does not answer",
}


class Unfit(LineLost):
    """It answers, and may not keep the books; `meaning` says why in a sentence."""

    def __init__(self, kind: str, meaning: str) -> None:
        super().__init__(kind)
        self.meaning = meaning


def meaning_of(error: LineLost) -> str:
    """What is wrong with the server, in words where there are some."""
    if isinstance(error, Unfit):
        return error.meaning
    return _MEANINGS.get(error.kind, error.kind)


async def fit_line(
    url: str,
    step_s: float,
    *,
    warns: bool = False,
    teach: Callable[[Line], Awaitable[None]] | None = None,
) -> Line:
    """A connection to a server that may keep the books; raises Unfit, LineLost.

    To connect and to inspect it take `step_s` at most, each. Then `teach` tells it what it has to
    know; what that raises ends the connection as well.
    """
    try:
        line = await dial(url, step_s)
    except TimeoutError:
        raise LineLost("TimeoutError") from None
    except DriverMissing as error:
        raise Unfit("DriverMissing", "pip install 'tidegate[redis]'") from error
    try:
        await inspect(line, step_s, warns=warns)
        if teach is not None:
            await teach(line)
    except BaseException:
        line.abort()
        raise
    return line


async def inspect(line: Line, timeout_s: float, *, warns: bool) -> None:
    """Whether this server may keep the books; raises Unfit, LineLost.

    `warns`: what is odd and no reason to refuse it goes to the log.
    """
    info, append, memory = await ask(
        line,
        [
            command("INFO"),
            command("CONFIG", "GET", "appendonly"),
            command("CONFIG", "GET", "maxmemory*"),
        ],
        timeout_s,
    )
    if isinstance(info, ErrorReply) and info.kind in ("NOAUTH", "LOADING"):
        raise LineLost(info.kind)
    facts = dict(re.findall(r"^(\w+):(.*?)\r?$", _text(info), re.MULTILINE))
    _check_version(facts.get("redis_version", ""), warns=warns)
    if facts.get("redis_mode", "standalone") == "cluster":
        raise Unfit("Cluster", "it is a cluster; name a server that holds every key by itself")
    if facts.get("role") == "slave":
        raise LineLost("READONLY")
    _check_persistence(append, warns=warns)
    _check_eviction(memory, warns=warns)


def _warn(message: str, *, warns: bool) -> None:
    if warns:
        logger.warning(message)


def _check_version(version: str, *, warns: bool) -> None:
    found = re.match(r"([0-9]+)\.([0-9]+)", version)
    if found is None:
        _warn("store_version_unknown", warns=warns)
    elif tuple(map(int, found.groups())) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise Unfit("TooOld", f"it is Redis {version}; tidegate needs {wanted} or newer")


def _check_persistence(reply: object, *, warns: bool) -> None:
    match reply:
        case [b"appendonly", b"yes"]:
            return
        case [b"appendonly", _]:
            raise Unfit(
                "AppendOnlyOff",
                "appendonly is off there, so a restart would give every tenant a fresh quota; set"
                " `appendonly yes` in its configuration, or: redis-cli CONFIG SET appendonly yes",
            )
        case _:
            _warn("store_persistence_unknown", warns=warns)


def _check_eviction(reply: object, *, warns: bool) -> None:
    if not isinstance(reply, list) or len(reply) % 2:
        return
    facts = dict(zip(reply[::2], reply[1::2], strict=True))
    if facts.get(b"maxmemory", b"0") != b"0" and facts.get(b"maxmemory-policy") != b"noeviction":
        # Every key of ours has a time limit, so that any other policy may drop a full counter.
        _warn("store_may_evict", warns=warns)


def _text(reply: object) -> str:
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""


__all__ = ["OLDEST", "Unfit", "fit_line", "inspect", "meaning_of"]
