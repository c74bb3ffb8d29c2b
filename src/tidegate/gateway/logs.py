"""What may a log line say?

Lives here: the list of fields, the formatter that prints these and nothing else, and the pace
of lines that strangers can cause. A line is an event name and fields. Texts of other people's
loggers, messages of exceptions and unknown fields never get out, whatever they hold. Does not
live here: which events there are (their modules log them).
"""

import json
import logging
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, TextIO

from tidegate.clock import Clock
from tidegate.records.entries import asked_name

Form = Literal["auto", "json", "text"]
Field = str | int | float | bool

_NAME = re.compile(r"[A-Za-z0-9_.:/@*?,=\[\]+-]{1,200}")
_EVENT = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")
_PACKAGE = str(Path(__file__).resolve().parents[1])
_OWN: Final = "tidegate"
_MOST_FRAMES = 12
_MOST_CAUSES = 5
_MOST_BYTES = 4_096  # with its line end; PIPE_BUF of Linux
_FRAME: Final = {"at": "", "level": "", "event": ""}


def _name(value: object) -> Field | None:
    """A name or word of ours or of the configuration."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def _asked(value: object) -> Field | None:
    """A name that a client chose."""
    return asked_name(value) if isinstance(value, str) else None


def _number(value: object) -> Field | None:
    """A count, a size, a time, a yes or no."""
    return value if isinstance(value, int | float) else None


def _sentence(value: object) -> Field | None:
    """Words about the operator's own file or machine, which hold no secret by construction."""
    if not isinstance(value, str):
        return None
    return "".join(c if c.isprintable() else " " for c in value[:1000])


ALLOWED: Mapping[str, Callable[[object], Field | None]] = {
    "request_id": _name,
    "incident": _name,
    "code": _name,
    "status": _number,
    "upstream_status": _number,
    "error": _name,
    "outcome": _name,
    "reason": _name,
    "stage": _name,
    "verdict": _name,
    "rule": _name,
    "surface": _name,
    "tenant": _name,
    "principal": _name,
    "issuer": _name,
    "key_id": _name,
    "route": _name,
    "provider": _name,
    "credential": _number,
    "credential_id": _name,
    "server": _name,
    "limit": _name,
    "detector": _name,
    "tool": _asked,
    "method": _asked,
    "model": _asked,
    "revision": _name,
    "signal": _name,
    "listener": _name,
    "host": _name,
    "port": _number,
    "pid": _number,
    "worker": _number,
    "workers": _number,
    "count": _number,
    "suppressed": _number,
    "dropped": _number,
    "lost": _number,
    "bytes": _number,
    "attempts": _number,
    "running": _number,
    "seconds": _number,
    "pause_s": _number,
    "ahead_s": _number,
    "duration_ms": _number,
    "version": _name,
    "problem": _sentence,
    "path": _sentence,
    "said": _sentence,
}
"""Every field a line may have, with the check its value must pass. `path` is one of our files,
never that of a request. `said` is a line of a tool server's stderr, masked (child_words)."""

# What logging itself puts on a record; everything else came from `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class AllowListFormatter(logging.Formatter):
    """One line for a record; `dropped_fields` counts what was not allowed to be in one.

    `worker` stands in every line. A line is no longer than what one write to a pipe leaves in one
    piece, so that lines of several processes do not run into each other.
    """

    def __init__(self, *, as_json: bool, worker: int | None = None) -> None:
        super().__init__()
        self._as_json = as_json
        self._worker = {} if worker is None else {"worker": worker}
        self.dropped_fields = 0

    def format(self, record: logging.LogRecord) -> str:
        """The record without its message, arguments and unknown fields."""
        line: dict[str, object] = {
            "at": _time(record.created),
            "level": record.levelname.lower(),
            "event": self._event(record),
            **self._worker,
        }
        for name, value in vars(record).items():
            if name in _STANDARD or value is None:
                continue
            check = ALLOWED.get(name)
            allowed = check(value) if check is not None else None
            if allowed is None:
                self.dropped_fields += 1
            else:
                line[name] = allowed
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            line |= _exception(record.exc_info[1])
        return _fitting(line, _json if self._as_json else _text)

    def _event(self, record: logging.LogRecord) -> str:
        if _is_own(record.name):
            event = record.msg
            if isinstance(event, str) and not record.args and _EVENT.fullmatch(event):
                return event
            self.dropped_fields += 1
            return "unnamed"
        # Somebody else's sentence may quote a request; where it was said is all we repeat.
        logger = record.name if _NAME.fullmatch(record.name) else "unknown"
        return f"foreign:{logger}:{record.lineno}"


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream; a line that cannot be written is counted and forgotten."""

    def __init__(self, stream: TextIO, *, as_json: bool, worker: int | None = None) -> None:
        super().__init__(stream)
        self._formatter = AllowListFormatter(as_json=as_json, worker=worker)
        self.setFormatter(self._formatter)
        self.failed = 0

    @property
    def dropped_fields(self) -> int:
        """How many fields were not printed because no rule allows them."""
        return self._formatter.dropped_fields

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Count; the default would print the record with its arguments."""
        self.failed += 1


def set_up(
    form: Form, level: str, *, stream: TextIO | None = None, worker: int | None = None
) -> LogHandler:
    """Send all logging of this process to `stream` (stderr), as lines of the allow-list.

    `auto` is text on a terminal and JSON elsewhere. `worker` is the place of this process among
    several. Loggers of libraries speak from warning up.
    Replaces every handler of the root logger; warnings of Python become log lines.
    """
    stream = stream or sys.stderr
    as_json = form == "json" or (form == "auto" and not stream.isatty())
    handler = LogHandler(stream, as_json=as_json, worker=worker)
    handler.addFilter(lambda r: _is_own(r.name) or r.levelno >= logging.WARNING)
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    logging.captureWarnings(capture=True)
    return handler


class RefusalLog:
    """Log lines for requests of strangers: `burst` a code in `window_s`, the rest as a number."""

    def __init__(
        self, logger: logging.Logger, clock: Clock, *, burst: int = 5, window_s: float = 10.0
    ) -> None:
        self._logger = logger
        self._clock = clock
        self._burst = burst
        self._window_s = window_s
        self._windows: dict[str, tuple[float, int]] = {}

    def refused(self, code: str, **fields: Field) -> None:
        """Log `request_refused`, unless this code had its lines in this window.

        `code` is one of our own, so the number of windows is bounded. The first line of a later
        window says how many were suppressed before it.
        """
        now_s = self._clock.monotonic_s()
        began_s, count = self._windows.get(code, (now_s, 0))
        suppressed = 0
        if now_s - began_s >= self._window_s:
            suppressed = max(0, count - self._burst)
            began_s, count = now_s, 0
        self._windows[code] = (began_s, count + 1)
        if count >= self._burst:
            return
        extra: dict[str, Field] = {"code": code, **fields}
        if suppressed:
            extra["suppressed"] = suppressed
        self._logger.info("request_refused", extra=extra)


def _is_own(logger: str) -> bool:
    return logger == _OWN or logger.startswith(_OWN + ".")


def _time(created_s: float) -> str:
    moment = datetime.fromtimestamp(created_s, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _exception(error: BaseException) -> dict[str, object]:
    """Type names along the causes, and where in our own code the last of it passed."""
    names: list[str] = []
    link: BaseException | None = error
    while link is not None and len(names) < _MOST_CAUSES:
        name = type(link).__name__
        names.append(name if _TYPE.fullmatch(name) else "unnamed")
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return {"error": " < ".join(names), "frames": _own_frames(error.__traceback__)}


def _own_frames(trace: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(_PACKAGE):
            file = code.co_filename[len(_PACKAGE) + 1 :]
            frames.append(f"{file}:{trace.tb_lineno}")
        trace = trace.tb_next
    return frames[-_MOST_FRAMES:]


def _fitting(line: dict[str, object], form: Callable[[Mapping[str, object]], str]) -> str:
    """The line in its form, with its longest words cut until it fits."""
    text = form(line)
    while len(text.encode("utf-8", "backslashreplace")) >= _MOST_BYTES:
        name = max(line, key=lambda name: len(form({**_FRAME, name: line[name]})))
        value = line[name]
        if not isinstance(value, str | list) or len(value) < 2:
            break  # numbers and short words: cannot be this long
        line[name] = value[: len(value) // 2]
        text = form(line)
    return text


def _json(line: Mapping[str, object]) -> str:
    return json.dumps(line, ensure_ascii=True, separators=(",", ":"))


def _text(line: Mapping[str, object]) -> str:
    rest = {name: value for name, value in line.items() if name not in ("at", "level", "event")}
    fields = " ".join(f"{name}={_shown(value)}" for name, value in rest.items())
    return f"{line['at']} {str(line['level']).upper():<7} {line['event']} {fields}".rstrip()


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text else text


__all__ = ["ALLOWED", "AllowListFormatter", "Form", "LogHandler", "RefusalLog", "set_up"]
