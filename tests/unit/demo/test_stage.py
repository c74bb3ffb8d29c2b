"""Is the demo's output plain where it must be, and its commands whole?"""

import shlex

from tests.seed.lines import parse
from tidegate.demo.stage import Stage, curl

BEARER = "some-key"


def written(*, color: bool) -> str:
    pieces: list[str] = []
    stage = Stage(pieces.append, color=color)
    stage.title(1, "A title")
    stage.note("a note")
    stage.put(stage.paint("piece", "green"))
    stage.command(curl("http://127.0.0.1:1/x", token=BEARER, body="{}"))
    return "".join(pieces)


def test_without_color_there_is_no_escape_code() -> None:
    assert "\033" not in written(color=False)
    assert "1. A title" in written(color=False)


def test_color_is_only_added_and_always_reset() -> None:
    colored = written(color=True)
    assert colored.count("\033[0m") * 2 == colored.count("\033[")


def test_a_curl_command_is_one_shell_line_with_the_request_we_made() -> None:
    lines = curl("localhost:8080/v1/x", token=BEARER, body='{"a":"b c"}', options="-N")
    request = parse(" \\\n  ".join(lines))
    assert (request.method, request.port, request.target) == ("POST", 8080, "/v1/x")
    assert dict(request.headers) == {
        "Authorization": f"Bearer {BEARER}",
        "Content-Type": "application/json",
    }
    assert request.body == b'{"a":"b c"}'
    assert shlex.split(lines[0])[0] == "curl"
