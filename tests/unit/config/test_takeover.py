"""Does a gateway that runs take over what it may, and keep what only a restart changes?"""

import pickle
from pathlib import Path

import pytest

from tests.unit.config.corpus import VALID, load
from tidegate.config import (
    Config,
    as_taken_over,
    load_config_text,
    reload_problems,
    restart_parts,
)

BEGAN = "server: { workers: 2, drain_s: 5.0 }\nstore: { url: 'sqlite:///began.db' }\n"


def config(text: str) -> Config:
    return load_config_text(text, {}, name="f")


def test_a_reload_may_not_switch_the_demo() -> None:
    demo, own = config("server: {}\ndemo: true\n"), config("server: {}\n")
    assert reload_problems(demo, running=demo) == reload_problems(own, running=own) == ()
    (on,) = reload_problems(demo, running=own)
    (off,) = reload_problems(own, running=demo)
    assert str(on) == "f:2:7: demo: a reload cannot switch the demo on: demo needs a restart"
    assert off.wrong == "a reload cannot switch the demo off"


def test_several_workers_take_no_server_on_stdio_even_if_the_file_wants_one_worker() -> None:
    stdio = config("mcp: { servers: { files: { command: [npx, server] } } }\n")
    assert reload_problems(stdio, running=config("server: {}\n")) == ()
    (problem,) = reload_problems(stdio, running=config(BEGAN))
    assert str(problem) == (
        "f:1:37: mcp.servers.files.command: 2 workers run, and they cannot share a server on stdio:"
        " restart with `server.workers: 1`"
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (BEGAN, ()),
        (BEGAN + "redaction: { response: off }\n", ()),
        ("server: { workers: 4, drain_s: 5.0 }\nstore: { url: 'memory:' }\n", ("server", "store")),
        (
            BEGAN + "records: { keep_days: 1 }\ntelemetry: { level: error }\n",
            ("records", "telemetry"),
        ),
    ],
    ids=["same", "swapped", "kept", "also kept"],
)
def test_parts_that_need_a_restart_are_named_and_keep_their_values(
    text: str, parts: tuple[str, ...]
) -> None:
    began, newer = config(BEGAN), config(text.replace("workers: 4", "workers: 1"))
    assert restart_parts(newer, running=began) == parts
    taken = as_taken_over(newer, running=began)
    assert restart_parts(taken, running=began) == ()
    assert taken.redaction == newer.redaction
    assert (taken.revision, taken.source) == (newer.revision, "f")


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_configuration_is_the_same_in_another_process(path: Path) -> None:
    ours = load(path)
    theirs = pickle.loads(pickle.dumps(ours))  # noqa: S301 - our own bytes
    assert theirs == ours
    assert theirs.origin == ours.origin
    assert (theirs.revision, theirs.warnings) == (ours.revision, ours.warnings)
    secrets = [key.key.get_secret_value() for key in ours.identity.keys if key.key]
    assert [key.key.get_secret_value() for key in theirs.identity.keys if key.key] == secrets
