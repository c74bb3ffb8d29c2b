"""Is only such a URL connected to that keeps the token between the two ends?"""

import pytest

from tidegate.bridges.endpoint import BadEndpoint, endpoint


@pytest.mark.parametrize(
    "url",
    [
        "https://mcp.example.com/mcp",
        "https://mcp.example.com:8443/a/b?c=d",
        "http://localhost:8000/mcp",
        "http://127.0.0.1/mcp",
        "http://127.8.9.10:1/mcp",
        "http://[::1]:8000/mcp",
    ],
)
def test_https_and_this_machine_are_taken_as_they_are(url: str) -> None:
    assert endpoint(url, "secret").url == url
    assert endpoint(url, "").token is None


@pytest.mark.parametrize(
    "url",
    [
        "http://mcp.example.com/mcp",
        "http://10.0.0.1/mcp",
        "http://localhost.example.com/mcp",
        "http://127.0.0.1.example.com/mcp",
        "http://0.0.0.0/mcp",
        "http://[::ffff:10.0.0.1]/mcp",
    ],
)
def test_plain_http_to_another_machine_needs_to_be_named_insecure(url: str) -> None:
    with pytest.raises(BadEndpoint, match="--insecure"):
        endpoint(url, None)
    assert endpoint(url, None, insecure=True).url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mcp.example.com/mcp",
        "ftp://mcp.example.com/",
        "file:///etc/passwd",
        "https://",
        "https:///mcp",
        "https://user:word@mcp.example.com/mcp",
        "https://token@mcp.example.com/mcp",
        "https://mcp.example.com/mcp#part",
        "https://mcp.example.com/a b",
        "https://mcp.example.com/\r\nX: y",
        "https://mcp.example.com:port/",
        "https://[::1/",
        "https://mcp.exämple.com/",
    ],
)
def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(BadEndpoint):
        endpoint(url, None, insecure=True)


@pytest.mark.parametrize("token", ["xy zy", "xy\nzy", "ä", "x\r\nX-Evil: 1", " x"])
def test_a_token_that_does_not_fit_into_a_header_is_refused_without_a_word_of_it(
    token: str,
) -> None:
    with pytest.raises(BadEndpoint) as caught:
        endpoint("https://mcp.example.com/", token)
    assert token not in str(caught.value)
    assert "secret-token" not in repr(endpoint("https://mcp.example.com/", "secret-token"))
