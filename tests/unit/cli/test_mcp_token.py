"""Is a token that no header can carry refused before anything listens?"""

import click
import pytest

from tidegate.cli.mcp_http import serve_http
from tidegate.tools import ToolServer


@pytest.mark.parametrize("token", [" ", "two words", "line\nbreak", "t\u00f6ken", "a,b"])
def test_a_token_that_cannot_be_borne_is_refused_at_the_start(token: str) -> None:
    with pytest.raises(click.UsageError, match="cannot be sent in a header") as refused:
        serve_http(ToolServer([]), "127.0.0.1:0", token)
    assert token.strip() == "" or token not in str(refused.value)
