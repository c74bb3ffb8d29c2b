import json
from pathlib import Path

import pytest

from tidegate.config import (
    ConfigInvalid,
    DemoPorts,
    Overrides,
    find_config,
    load_config,
    load_config_text,
    values,
)
from tidegate.config.show import as_yaml, effective

OWN_PROVIDER = "providers:\n  mine: { base_url: https://api.example/v1 }\n"


def problems(text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        load_config_text(text, environ, name="f")
    return [str(problem) for problem in caught.value.problems]


# --- the demo world


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n"])
def test_an_empty_file_is_the_demo_world(text: str) -> None:
    config = load_config_text(text, {})
    assert config.demo is True
    assert config.model_dump() == load_config(None, {}).model_dump()
    assert config.revision == load_config(None, {}).revision


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "{}\n", "~\n"])
def test_a_file_that_was_emptied_is_not_the_demo_world(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tidegate.yaml"
    path.write_text(text)
    assert load_config(path, {}).demo is True
    with pytest.raises(ConfigInvalid) as caught:
        load_config(path, {}, empty_is_demo=False)
    (problem,) = caught.value.problems
    assert (problem.file, problem.wrong) == (str(path), "the file is empty")
    # Without a file there is nothing that could have been emptied.
    assert load_config(None, {}, empty_is_demo=False).demo is True


def test_a_file_that_is_broken_and_empty_says_what_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "tidegate.yaml"
    path.write_text("- a\n")
    with pytest.raises(ConfigInvalid, match="holds a list"):
        load_config(path, {}, empty_is_demo=False)


def test_the_demo_world_has_the_published_keys_and_routes() -> None:
    config = load_config(None, {})
    assert [(key.principal, key.tenant, key.roles) for key in config.identity.keys] == [
        ("viewer", "demo", ("viewer",)),
        ("admin", "demo", ("admin",)),
        ("acme", "acme", ("tenant",)),
    ]
    assert config.identity.anonymous is None
    assert config.mcp.hide_denied == "off"
    leaky, default = config.routes
    assert (leaky.model, leaky.redaction.tail_comment, leaky.redaction.response) == (
        "leaky*",
        True,
        "enforce",
    )
    assert (default.model, default.cooling.on_429_s) == ("*", 0.0)
    assert [candidate.provider for candidate in default.candidates] == ["primary", "backup"]
    assert config.warnings == ()
    assert config.not_in_effect == ()


def test_the_demo_world_follows_its_ports() -> None:
    config = load_config(None, {}, demo_ports=DemoPorts(1001, 1002, 1003))
    assert config.mcp.servers["backend"].url == "http://127.0.0.1:1001/mcp"
    assert config.providers["leaky"].base_url == "http://127.0.0.1:1002/v1"
    assert config.providers["primary"].base_url == "http://127.0.0.1:1003/primary/v1"
    assert config.providers["backup"].base_url == "http://127.0.0.1:1003/backup/v1"


def test_a_file_with_anything_in_it_gets_no_demo_key() -> None:
    config = load_config_text("server: { port: 9000 }\n", {})
    assert config.identity.keys == ()
    assert config.demo is False
    assert config.providers == {}


def test_demo_true_fills_only_the_parts_that_the_file_leaves_out() -> None:
    config = load_config_text(
        f"demo: true\n{OWN_PROVIDER}identity: {{ anonymous: {{ principal: guest }} }}\n", {}
    )
    assert list(config.providers) == ["mine"]
    assert [route.name for route in config.routes] == ["default"]
    assert config.routes[0].candidates[0].provider == "mine"
    assert len(config.identity.keys) == 3
    assert config.identity.anonymous is not None
    assert list(config.mcp.servers) == ["backend"]


def test_providers_without_routes_are_served_in_their_order() -> None:
    config = load_config_text(f"{OWN_PROVIDER}  other: {{ base_url: https://b.example/v1 }}\n", {})
    (route,) = config.routes
    assert route.name == "default"
    assert [candidate.provider for candidate in route.candidates] == ["mine", "other"]


# --- overrides and environment


def test_the_command_line_wins_over_the_file() -> None:
    config = load_config_text(
        "server: { host: 127.0.0.1, port: 1 }\n",
        {},
        overrides=Overrides(host="::1", port=2, workers=3, admin_port=4),
    )
    server = config.server
    assert (server.host, server.port, server.workers, server.admin.port) == ("::1", 2, 3, 4)
    assert config.origin.places["server", "host"] == "--host"
    assert config.origin.places["server", "admin", "port"] == "--admin-port"


def test_a_bad_override_is_a_problem_of_the_command_line() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        load_config(None, {}, overrides=Overrides(host="not a host", port=70_000))
    assert [(problem.file, problem.line) for problem in caught.value.problems] == [
        ("--host", 0),
        ("--port", 0),
    ]


def test_an_override_takes_part_in_the_checks_of_exposure() -> None:
    text = "identity: { keys: [{ key: not-so-secret-at-all, principal: acme }] }\n"
    assert load_config_text(text, {}).warnings
    with pytest.raises(ConfigInvalid):
        load_config_text(text, {}, overrides=Overrides(host="0.0.0.0"))  # noqa: S104


@pytest.mark.parametrize(
    ("said", "variable", "effective"),
    [
        ("off", "1", "list"),
        ("list", "1", "list"),
        ("full", "1", "full"),
        (None, "1", "full"),
        ("off", "0", "off"),
        ("off", "", "off"),
        ("list", "0", "list"),
    ],
)
def test_the_hide_variable_raises_off_to_list_and_never_lowers_full(
    said: str | None, variable: str, effective: str
) -> None:
    text = f"mcp: {{ hide_denied: {said} }}\n" if said else "mcp: { path: /mcp }\n"
    config = load_config_text(text, {"HIDE_ADMIN_TOOLS": variable})
    assert config.mcp.hide_denied == effective


def test_the_hide_variable_works_on_the_demo_world_and_names_itself() -> None:
    config = load_config(None, {"HIDE_ADMIN_TOOLS": "1"})
    assert config.mcp.hide_denied == "list"
    assert config.origin.places["mcp", "hide_denied"] == "HIDE_ADMIN_TOOLS"


def test_a_hide_variable_that_nobody_understands_stops_the_start() -> None:
    assert problems("demo: true\n", HIDE_ADMIN_TOOLS="yes") == [
        "HIDE_ADMIN_TOOLS: mcp.hide_denied: this is neither 0 nor 1: write HIDE_ADMIN_TOOLS=1"
    ]


def test_the_log_variable_wins_over_the_file_and_is_checked() -> None:
    config = load_config_text("telemetry: { log: text }\n", {"TIDEGATE_LOG": "json"})
    assert config.telemetry.log == "json"
    assert problems("demo: true\n", TIDEGATE_LOG="xml") == [
        "TIDEGATE_LOG: telemetry.log: 'xml' is not known here: write one of auto, json, text"
    ]


def test_an_override_does_not_hide_a_broken_section() -> None:
    assert problems("telemetry: loud\n", TIDEGATE_LOG="json") == [
        "f:1:12: telemetry: 'loud' is a single value: write keys under it: log, level, metrics"
    ]


# --- finding the file


def test_the_order_in_which_a_file_is_looked_for(tmp_path: Path) -> None:
    here, xdg = tmp_path / "here", tmp_path / "xdg"
    here.mkdir()
    (xdg / "tidegate").mkdir(parents=True)
    environ = {"TIDEGATE_CONFIG": "named.yaml", "XDG_CONFIG_HOME": str(xdg)}
    assert find_config(Path("given.yaml"), environ, folder=here) == Path("given.yaml")
    assert find_config(None, environ, folder=here) == Path("named.yaml")
    environ["TIDEGATE_CONFIG"] = ""
    assert find_config(None, environ, folder=here) is None
    (xdg / "tidegate" / "tidegate.yaml").touch()
    assert find_config(None, environ, folder=here) == xdg / "tidegate" / "tidegate.yaml"
    (here / "tidegate.yaml").touch()
    assert find_config(None, environ, folder=here) == here / "tidegate.yaml"


def test_without_an_absolute_xdg_folder_the_one_below_home_counts(tmp_path: Path) -> None:
    file = tmp_path / ".config" / "tidegate" / "tidegate.yaml"
    file.parent.mkdir(parents=True)
    file.touch()
    empty = tmp_path / "empty"
    empty.mkdir()
    for xdg in ({}, {"XDG_CONFIG_HOME": ""}, {"XDG_CONFIG_HOME": "relative"}):
        assert find_config(None, {"HOME": str(tmp_path), **xdg}, folder=empty) == file
    assert find_config(None, {}, folder=empty) is None


def test_a_file_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    for path, says in (
        (tmp_path / "none.yaml", "there is no such file"),
        (tmp_path, "this is a directory"),
        (Path("nul\0byte.yaml"), "cannot be read"),
        (tmp_path / ("x" * 300), "cannot be read"),
    ):
        with pytest.raises(ConfigInvalid) as caught:
            load_config(path, {})
        (problem,) = caught.value.problems
        assert says in problem.wrong
        assert str(problem).startswith(f"{path}: ")


def test_files_by_reference_are_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key-in-a-file-of-its-own\r\n")
    file = tmp_path / "tidegate.yaml"
    file.write_text("identity: { keys: [{ key: '${file:key}', principal: acme }] }\n")
    config = load_config(file, {})
    key = config.identity.keys[0].key
    assert key is not None
    assert key.get_secret_value() == "a-key-in-a-file-of-its-own"
    assert config.source == str(file)


# --- the revision


def revision(text: str, **environ: str) -> str:
    return load_config_text(text, environ).revision


KEYED = "identity: { keys: [{ key: '${env:K}', principal: acme }] }\n"


def test_the_revision_is_twelve_hex_digits_of_the_effective_values() -> None:
    assert len(revision("")) == 12
    assert int(revision(""), 16) >= 0
    assert revision("server: {port: 8080}\n") == revision("# said\ntelemetry:\n  log: auto\n")
    assert revision("server: {port: 8080}\n") != revision("server: {port: 8082}\n")


def test_the_revision_knows_nothing_of_secret_values() -> None:
    assert revision(KEYED, K="a" * 20) == revision(KEYED, K="b" * 20)
    assert revision(KEYED, K="a" * 20) != revision(KEYED.replace(":K", ":L"), L="a" * 20)
    literal = "identity: {{ keys: [{{ key: {}, principal: acme }}] }}\n"
    assert revision(literal.format("a" * 20)) == revision(literal.format("b" * 20))


def test_an_override_for_a_route_that_only_repeats_the_default_still_counts() -> None:
    route = "routes: [{{ name: r, candidates: [{{ provider: mine }}], redaction: {{ {} }} }}]\n"
    bare, said = OWN_PROVIDER + route.format(""), OWN_PROVIDER + route.format("response: enforce")
    assert revision(bare) != revision(said)


# --- secrets


def test_no_form_of_the_configuration_shows_a_secret() -> None:
    text = (
        "server: { admin: { token: '${env:A}' } }\n"
        "identity: { keys: [{ key: '${env:K}', principal: acme }] }\n"
        "providers:\n"
        "  p:\n"
        "    base_url: https://api.example/v1\n"
        "    credentials: ['${env:P}']\n"
        "    headers: { X-Key: 'v1 ${env:P}' }\n"
        "mcp: { servers: { b: { url: 'http://127.0.0.1:1/mcp', credential: '${env:M}' } } }\n"
    )
    environ = {name: f"{name.lower()}-" + "0123456789abcdef" for name in "AKPM"}
    config = load_config_text(text, environ)
    for said in (repr(config), str(config), config.model_dump_json(), str(config.origin)):
        assert [value for value in environ.values() if value in said] == []


ADDRESSES = (
    "identity: {{ keys: [{{ key: '${{env:K}}', principal: acme }}] }}\n"
    "store: {{ url: 'redis://me:{0}@127.0.0.1:6379/0' }}\n"
    "providers:\n"
    "  p: {{ base_url: 'http://127.0.0.1:1/v1', proxy: 'http://me:{0}@proxy.example:3128' }}\n"
    "  q: {{ base_url: 'http://127.0.0.1:1/v1', proxy: 'http://{0}@proxy.example:3128' }}\n"
    "mcp: {{ servers: {{ b: {{ url: 'http://127.0.0.1:1/mcp?api_key={0}&v=2' }} }} }}\n"
    "redaction: {{ classifier: {{ url: 'http://127.0.0.1:9300/find?x={0}' }} }}\n"
)


def test_a_secret_inside_an_address_is_one_too() -> None:
    secret, other = "s3cretword0123456789", "0therword0123456789x"
    config = load_config_text(ADDRESSES.format(secret), {"K": "k" * 20})
    said = [repr(config), str(config), as_yaml(config), json.dumps(effective(config))]
    said += [str(finding) for finding in (*config.warnings, *config.not_in_effect)]
    said += [repr(address) for address in values.mcp_servers(config).values()]
    assert [words for words in said if secret in words] == []
    assert "http://127.0.0.1:1/mcp?api_key=(literal)&v=2" in as_yaml(config)
    assert config.revision == load_config_text(ADDRESSES.format(other), {"K": "k" * 20}).revision
    warned = {warning.path for warning in config.warnings}
    assert {"store.url", "providers.p.proxy", "providers.q.proxy"} <= warned
    assert {"mcp.servers.b.url", "redaction.classifier.url"} <= warned


def test_an_address_without_a_secret_is_shown_as_it_is() -> None:
    url = "http://127.0.0.1:1/mcp?v=2&tenant=acme"
    config = load_config_text(f"mcp: {{ servers: {{ b: {{ url: '{url}' }} }} }}\n", {})
    assert url in as_yaml(config)
    assert "mcp.servers.b.url" not in {warning.path for warning in config.warnings}
