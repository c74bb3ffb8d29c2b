import jsonschema
import pytest
import yaml

from tests.unit.config.corpus import ENVIRON, VALID, load
from tidegate.config import Overrides, load_config, load_config_text
from tidegate.config.document import read_document
from tidegate.config.schema import json_schema
from tidegate.config.show import as_yaml, effective, origins

pytestmark = pytest.mark.full


def shown(text: str) -> dict[str, str]:
    """Line without its comment -> comment."""
    config = load_config_text(text, ENVIRON, name="f.yaml", overrides=Overrides(port=9000))
    lines = as_yaml(config).splitlines()
    pairs = [line.partition("#") for line in lines]
    # The first of equal lines counts: reversed, later ones are overwritten.
    return {line.strip(): comment.strip() for line, _, comment in reversed(pairs)}


TEXT = """
server:
  host: 127.0.0.1
identity:
  keys:
    - key: "${env:ACME_KEY}"
      principal: acme
providers:
  primary:
    base_url: https://api.example/v1
    credentials: ["${env:PRIMARY_KEY}", literal-credential]
    headers: { X-Project: "blue ${env:REGION}" }
"""


def test_every_value_says_where_it_came_from() -> None:
    lines = shown(TEXT)
    assert lines["host: 127.0.0.1"] == "f.yaml:3"
    assert lines["port: 9000"] == "--port"
    assert lines["drain_s: 30.0"] == "default"
    assert lines["- principal: acme"] == "f.yaml:7"
    assert lines["tenant: default"] == "default"
    assert lines["- provider: primary"] == "default: all providers in order"


def test_secrets_are_shown_as_references_and_never_as_values() -> None:
    lines = shown(TEXT)
    assert lines['key: "${env:ACME_KEY}"'] == "f.yaml:6"
    assert lines['credentials: ["${env:PRIMARY_KEY}", "(literal)"]'] == "f.yaml:11"
    assert lines['X-Project: "blue ${env:REGION}"'] == "f.yaml:12"
    assert "sha256: null" not in lines


def test_the_demo_world_is_named_as_an_origin() -> None:
    config = load_config(None, {})
    where = origins(config)
    assert where["identity.keys[0].key"] == "demo world"
    assert where["routes[1].cooling.on_429_s"] == "demo world"
    assert where["routes[1].cooling.max_s"] == "default"
    assert where["server.port"] == "default"
    assert "key: viewer-token-xyz" in as_yaml(config)


def test_what_is_shown_is_yaml_with_the_same_values() -> None:
    for path in VALID:
        config = load(path)
        assert yaml.safe_load(as_yaml(config)) == effective(config), path.name


def test_words_that_could_be_mistaken_are_shown_in_quotes() -> None:
    text = (
        "identity: { anonymous: { principal: 'no', tenant: '007', roles: ['1:30', true-ish] } }\n"
        "redaction: { allow: ['a: b', 'x#', '- x', '5'] }\n"
    )
    lines = shown(text)
    assert 'principal: "no"' in lines
    assert 'tenant: "007"' in lines
    assert 'roles: ["1:30", true-ish]' in lines
    config = load_config_text(text, {})
    assert load_config_text(as_yaml(config), {}).redaction == config.redaction


def test_the_schema_is_a_schema_and_describes_every_key() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    for part in (schema, *definitions.values()):
        assert part["additionalProperties"] is False
        for key, value in part["properties"].items():
            assert value.get("description") or "$ref" in value, key
            assert "title" not in value


def as_json(tree: object) -> object:
    """What an editor sees: lists for tuples, and no sections with nothing below them."""
    if isinstance(tree, dict):
        return {key: as_json(value) for key, value in tree.items()}
    return [as_json(item) for item in tree] if isinstance(tree, tuple) else tree


def test_the_schema_accepts_every_valid_file() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    for path in VALID:
        if path.stem not in ("demo_with_own_provider", "nobody_can_call"):
            validator.validate(as_json(read_document(path.read_bytes(), path.name).tree))


def test_the_schema_refuses_what_an_editor_should_mark() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    wrong: tuple[dict[str, object], ...] = (
        {"sever": {}},
        {"server": {"port": "8080"}},
        {"server": {"port": 70000}},
        {"mcp": {"rules": [{}]}},
        {"mcp": {"rules": [{"allow": {}, "deny": {}}]}},
        {"mcp": {"servers": {"a": {}}}},
        {"identity": {"keys": [{"principal": "a"}]}},
        {"limits": [{"name": "a", "tokens": 1, "requests": 1}]},
        {"routes": [{"name": "a", "candidates": []}]},
    )
    for tree in wrong:
        assert not validator.is_valid(tree), tree
