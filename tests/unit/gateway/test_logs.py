"""Does a log line say what it may, and nothing else?"""

import ast
import io
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate
from tidegate.gateway.logs import ALLOWED, AllowListFormatter, LogHandler, RefusalLog, set_up
from tidegate.testing.clock import ManualClock

pytestmark = pytest.mark.full

CANARY = "canary-" + "content with words"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def line(
    message: object = "attempt_failed",
    *,
    logger: str = "tidegate.gateway.chat",
    args: tuple[object, ...] = (),
    exc_info: Any = None,
    **extra: object,
) -> tuple[dict[str, Any], int]:
    formatter = AllowListFormatter(as_json=True)
    record = logging.LogRecord(logger, logging.WARNING, "chat.py", 7, message, args, exc_info)
    record.created = 1_796_040_201.123
    vars(record).update(extra)
    return json.loads(formatter.format(record)), formatter.dropped_fields


def test_the_whole_line_of_an_event() -> None:
    assert line(request_id="4f7c", provider="primary", attempts=2, seconds=0.5) == (
        {
            "at": "2026-11-30T12:03:21.123Z",
            "level": "warning",
            "event": "attempt_failed",
            "request_id": "4f7c",
            "provider": "primary",
            "attempts": 2,
            "seconds": 0.5,
        },
        0,
    )


def test_the_same_line_on_a_terminal() -> None:
    stream = Terminal()
    set_up("auto", "info", stream=stream)
    problem = "tidegate.yaml:4:5: server.port: not a port"
    extra = {"request_id": "4f7c", "status": 503, "demo": True, "problem": problem}
    logging.getLogger("tidegate.x").warning("config_reload_failed", extra=extra)
    time, _, rest = stream.getvalue().partition(" ")
    assert time.endswith("Z")
    assert rest == (
        'WARNING config_reload_failed request_id=4f7c status=503 problem="' + problem + '"\n'
    )


@pytest.mark.parametrize("field", ["text", "body", "authorization", "headers", "url", "msg_text"])
@pytest.mark.parametrize("value", ["word", 1, CANARY, {"a": 1}])
def test_a_field_outside_the_list_is_dropped_and_counted(field: str, value: object) -> None:
    written, dropped = line(request_id="4f7c", **{field: value})
    assert (set(written), dropped) == ({"at", "level", "event", "request_id"}, 1)


@pytest.mark.parametrize("field", sorted(set(ALLOWED) - {"problem", "path", "said"}))
@pytest.mark.parametrize("value", [CANARY, CANARY.encode(), [CANARY], {CANARY: 1}, object()])
def test_an_allowed_field_with_a_value_of_another_kind_is_dropped(
    field: str, value: object
) -> None:
    written, dropped = line(**{field: value})
    assert (field in written, dropped) == (False, 1)


@pytest.mark.parametrize("field", ["tool", "model", "method"])
def test_a_key_in_the_place_of_a_name_is_dropped(field: str) -> None:
    assert line(**{field: "sk-" + "tenant-x"}) == (line()[0], 1)
    assert line(**{field: "tools/call"})[0][field] == "tools/call"


def test_a_sentence_about_our_own_file_stays_on_one_line() -> None:
    assert line(problem="a\nb\x1b[2J" + "x" * 2000)[0]["problem"] == "a b [2J" + "x" * 993
    assert line(problem=5) == (line()[0], 1)


def test_on_a_terminal_lists_and_truths_are_short() -> None:
    formatter = AllowListFormatter(as_json=False)
    record = logging.LogRecord("tidegate.x", 40, "f", 7, "event", (), None)
    vars(record).update(running=True, exc_info=(Oddly, Oddly(), None))
    assert (
        formatter.format(record).partition(" ")[2]
        == "ERROR   event running=true error=Oddly frames="
    )


def test_none_is_no_value() -> None:
    assert line(provider=None, text=None) == (line()[0], 0)


@pytest.mark.parametrize("message", [CANARY, "Upper", "has space", "", 7, object(), "x" * 65])
def test_a_message_that_is_no_event_name_is_not_repeated(message: object) -> None:
    written, dropped = line(message)
    assert (written["event"], dropped) == ("unnamed", 1)


def test_a_message_with_arguments_is_not_repeated() -> None:
    written, _dropped = line("attempt_%s", args=(CANARY,))
    assert written["event"] == "unnamed"


@pytest.mark.parametrize(
    ("logger", "event"),
    [
        ("uvicorn.error", "foreign:uvicorn.error:7"),
        ("asyncio", "foreign:asyncio:7"),
        ("tidegatefake", "foreign:tidegatefake:7"),
        (CANARY, "foreign:unknown:7"),
    ],
)
def test_the_words_of_other_loggers_never_get_out(logger: str, event: str) -> None:
    written, _dropped = line(f"request {CANARY} failed", logger=logger)
    assert written["event"] == event


class Oddly(Exception):
    pass


def test_an_exception_shows_as_types_and_places_in_our_own_code() -> None:
    try:
        try:
            _ = {}[CANARY]
        except KeyError as error:
            raise Oddly(CANARY) from error
    except Oddly as error:
        written, _dropped = line(exc_info=(type(error), error, error.__traceback__))
    assert written["error"] == "Oddly < KeyError"
    assert written["frames"] == []  # this file is not part of the product
    assert "canary" not in json.dumps(written)


def test_frames_name_file_and_line_of_the_product_only() -> None:
    class Clock:
        def monotonic_s(self) -> float:
            raise Oddly(CANARY)

        now_s = monotonic_s

    try:
        RefusalLog(logging.getLogger("x"), Clock()).refused("code")
    except Oddly as error:
        written, _dropped = line(exc_info=(type(error), error, error.__traceback__))
    (frame,) = written["frames"]
    file, _, number = frame.partition(":")
    assert file == "gateway/logs.py"
    assert int(number) > 0


def test_a_chain_of_causes_ends_somewhere_and_obeys_from_none() -> None:
    error: Exception = Oddly()
    for _ in range(20):
        outer = Oddly()
        outer.__cause__ = error
        error = outer
    written, _dropped = line(exc_info=(Oddly, error, None))
    assert written["error"] == " < ".join(["Oddly"] * 5)
    alone = Oddly()
    alone.__context__, alone.__suppress_context__ = KeyError(CANARY), True
    assert line(exc_info=(Oddly, alone, None))[0]["error"] == "Oddly"
    strange = type(CANARY, (Exception,), {})()
    assert line(exc_info=(Oddly, strange, None))[0]["error"] == "unnamed"


def test_exc_info_without_an_exception_adds_nothing() -> None:
    assert line(exc_info=(None, None, None)) == line()


def test_each_line_of_a_worker_says_which_one() -> None:
    stream = io.StringIO()
    handler = LogHandler(stream, as_json=True, worker=3)
    for extra in ({}, {"worker": 7}):  # what is said about another one wins
        record = logging.makeLogRecord({"name": "tidegate.x", "msg": "draining", **extra})
        handler.emit(record)
    said = [json.loads(text) for text in stream.getvalue().splitlines()]
    assert [each["worker"] for each in said] == [3, 7]


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("character", ["x", "\u20ac", "\U0001f600"])
def test_no_line_is_longer_than_a_pipe_takes_whole(as_json: bool, character: str) -> None:  # noqa: FBT001
    record = logging.makeLogRecord(
        {
            "name": "tidegate.x",
            "msg": "config_warning",
            "problem": character * 5000,
            "path": character * 5000,
            **{name: "n" * 200 for name, check in ALLOWED.items() if check("n" * 200) == "n" * 200},
        }
    )
    text = AllowListFormatter(as_json=as_json, worker=1).format(record)
    assert 1000 < len(text.encode()) + len("\n") <= 4096
    if as_json:
        assert json.loads(text)["event"] == "config_warning"
        assert json.loads(text)["worker"] == 1


class Writes(io.RawIOBase):
    """A pipe that remembers each write."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.all.append(bytes(data))
        return len(data)


def test_a_line_leaves_in_one_write() -> None:
    raw = Writes()
    stream = io.TextIOWrapper(io.BufferedWriter(raw), line_buffering=True)
    handler = LogHandler(stream, as_json=True)
    for length in (1, 500, 5000):
        handler.emit(
            logging.makeLogRecord({"name": "tidegate.x", "msg": "a", "problem": "p" * length})
        )
    assert len(raw.all) == 3
    assert all(data.endswith(b"}\n") for data in raw.all)


VALUES = st.text(min_size=1) | st.binary() | st.lists(st.text()) | st.just(CANARY)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=3), st.text(), st.text())
def test_a_line_is_always_one_line_of_ascii_json(
    extra: dict[str, object], message: str, logger: str
) -> None:
    record = logging.LogRecord(logger, 30, CANARY, 7, CANARY + message, (CANARY,), None)
    for name, value in extra.items():
        vars(record).setdefault(name, value)
    for as_json in (True, False):
        text = AllowListFormatter(as_json=as_json).format(record)
        assert len(text.splitlines()) == 1
        assert "canary" not in text
    assert set(json.loads(AllowListFormatter(as_json=True).format(record))) >= {"at", "event"}


@pytest.mark.parametrize(
    ("form", "terminal", "starts"),
    [
        ("auto", True, "20"),
        ("auto", False, "{"),
        ("json", True, "{"),
        ("text", False, "20"),
    ],
)
def test_the_form_follows_the_terminal_only_if_it_is_auto(
    form: Any, terminal: object, starts: str
) -> None:
    stream = Terminal() if terminal else io.StringIO()
    set_up(form, "info", stream=stream)
    logging.getLogger("tidegate.x").info("started")
    assert stream.getvalue().startswith(starts)
    assert stream.getvalue().count("\n") == 1


def test_level_and_libraries_are_held_back_and_no_other_handler_remains() -> None:
    elsewhere, stream = io.StringIO(), io.StringIO()
    logging.getLogger().addHandler(logging.StreamHandler(elsewhere))
    set_up("json", "info", stream=stream)
    logging.getLogger("tidegate.x").debug("hidden")
    logging.getLogger("tidegate.x").info("shown")
    logging.getLogger("uvicorn.error").info("hidden")
    logging.getLogger("uvicorn.error").warning("shown")
    logging.getLogger("tidegate").warning("shown")
    events = [json.loads(text)["event"] for text in stream.getvalue().splitlines()]
    assert [event.partition(":")[0] for event in events] == ["shown", "foreign", "shown"]
    assert elsewhere.getvalue() == ""


def test_warnings_of_python_become_lines_without_their_text() -> None:
    stream = io.StringIO()
    set_up("json", "info", stream=stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning(CANARY, UserWarning, CANARY, 1)
    assert '"event":"foreign:py.warnings:' in stream.getvalue()
    assert "canary" not in stream.getvalue()


def test_a_line_that_cannot_be_written_is_counted_and_nothing_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = io.StringIO()
    stream.close()
    handler = LogHandler(stream, as_json=True)
    handler.handle(logging.LogRecord("tidegate", 30, "f", 1, "event", (CANARY,), None))
    assert handler.failed == 1
    assert capsys.readouterr() == ("", "")


def test_dropped_fields_are_counted_where_they_can_be_asked_for() -> None:
    handler = set_up("json", "info", stream=io.StringIO())
    logging.getLogger("tidegate.x").info("event", extra={"text": CANARY, "body": CANARY})
    assert handler.dropped_fields == 2


def logged_fields(source: Path) -> set[str]:
    """The keys of every `extra={...}` in one module."""
    return {
        key.value
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.keyword)
        and node.arg == "extra"
        and isinstance(node.value, ast.Dict)
        for key in node.value.keys
        if isinstance(key, ast.Constant)
    }


@pytest.mark.full
def test_every_field_that_the_product_logs_is_on_the_list() -> None:
    package = Path(tidegate.__file__).parent
    logged = {
        f"{source.relative_to(package)}: {field}"
        for source in package.rglob("*.py")
        for field in logged_fields(source) - set(ALLOWED)
    }
    assert logged == set()


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(vars(record))


def test_strangers_get_a_few_lines_a_window_and_the_rest_is_a_number() -> None:
    lines, clock = Lines(), ManualClock()
    logger = logging.getLogger("tidegate.test_logs")
    logger.setLevel(logging.INFO)
    logger.addHandler(lines)
    refusals = RefusalLog(logger, clock, burst=3, window_s=10.0)
    for _ in range(100):
        refusals.refused("gateway.unauthenticated", status=401)
        refusals.refused("gateway.not_found", status=404)
    assert len(lines.seen) == 6
    clock.advance(9.9)
    refusals.refused("gateway.not_found", status=404)
    assert len(lines.seen) == 6
    clock.advance(0.1)
    refusals.refused("gateway.not_found", status=404, request_id="4f7c")
    last = lines.seen[-1]
    assert (last["msg"], last["code"], last["status"]) == (
        "request_refused",
        "gateway.not_found",
        404,
    )
    assert (last["suppressed"], last["request_id"]) == (98, "4f7c")
    clock.advance(10)
    refusals.refused("gateway.not_found", status=404)
    assert "suppressed" not in lines.seen[-1]
