import pytest

from tidegate.config import ConfigInvalid, load_config_text


def accepts(text: str) -> bool:
    try:
        load_config_text(text, {})
    except ConfigInvalid:
        return False
    return True


@pytest.mark.parametrize(
    ("host", "fits"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("fe80::1", True),
        ("gateway.example", True),
        ("a", True),
        ("my-host_1", True),
        ("a" * 253, True),
        ("a" * 254, False),
        ("", False),
        ("a..b", False),
        (".a", False),
        ("a.", False),
        ("fade:80", False),
        ("a b", False),
        ("[::1]", False),
        ("a.example:80", False),
        ("ä.example", False),
    ],
)
def test_hosts(host: str, *, fits: bool) -> None:
    assert accepts(f"server: {{ allowed_hosts: ['{host}'] }}\n") is fits


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://api.example/v1", True),
        ("http://127.0.0.1:9201/primary/v1", True),
        ("http://[::1]:11434/v1", True),
        ("https://api.example", True),
        ("https://api.example/v1/", True),
        ("HTTPS://api.example/v1", True),
        ("https:///v1", False),
        ("https://api.example:0/v1", False),
        ("https://api.example:x/v1", False),
        ("https://[::1/v1", False),
        ("https://api.example/v1?", False),
        ("https://api.example/a b", False),
        ("https://api.example/ü", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_base_urls(url: str, *, fits: bool) -> None:
    assert accepts(f"providers: {{ p: {{ base_url: '{url}' }} }}\n") is fits


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("memory:", True),
        ("sqlite:///tidegate.db", True),
        ("sqlite:////var/lib/tidegate/store.db", True),
        ("redis://127.0.0.1:6379/0", True),
        ("rediss://redis.example:6380", True),
        ("memory", False),
        ("sqlite:///", False),
        ("sqlite:///a?mode=ro", False),
        ("redis://", False),
        ("redis://127.0.0.1:99999/0", False),
        ("redis://127.0.0.1:6379/0/1", False),
    ],
)
def test_stores(url: str, *, fits: bool) -> None:
    assert accepts(f"store: {{ url: '{url}' }}\n") is fits


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ("/mcp", True),
        ("/a/b-c/d.e", True),
        ("/", False),
        ("/mcp/", False),
        ("/a//b", False),
        ("/mcp?x", False),
        ("/v1/chat/completions", False),
        ("/metrics", False),
    ],
)
def test_mcp_paths(path: str, *, fits: bool) -> None:
    assert accepts(f"mcp: {{ path: '{path}' }}\n") is fits
