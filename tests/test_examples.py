"""Do the example configurations load, and does the full one show every key?"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from tidegate.config import Config, load_config
from tidegate.config.sections.mcp import Allow

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = (
    "ACME_KEY",
    "PRIMARY_KEY",
    "BACKUP_KEY",
    "BACKEND_TOKEN",
    "ADMIN_TOKEN",
    "REDIS_PASSWORD",
)
ENVIRON = {name: f"{name.lower()}-{'x' * 32}" for name in NAMES}
# Alternatives of what the file shows: one way to name a detector, one unit of a limit.
ALTERNATIVES = {"input_tokens", "output_tokens", "concurrent", "money_micros", "regex"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_example_loads_without_a_warning(path: Path) -> None:
    assert load_config(path, ENVIRON).warnings == ()


@pytest.mark.parametrize(
    ("name", "port"), [("mcp-gateway", 9000), ("guardrail", 9100), ("router", 9200)]
)
def test_the_profiles_listen_where_their_curl_lines_point(name: str, port: int) -> None:
    config = load_config(EXAMPLES / f"{name}.yaml", {})
    assert (config.server.host, config.server.port) == ("127.0.0.1", port)
    assert config.not_in_effect == ()


def test_the_full_example_shows_every_key() -> None:
    document = yaml.safe_load((EXAMPLES / "full.yaml").read_text())
    assert sorted(missing(Config, [document], "")) == []


def missing(model: type[BaseModel], documents: list[dict[str, Any]], path: str) -> list[str]:
    """Keys of the model that none of the documents has."""
    found = []
    for name, field in model.model_fields.items():
        key = field.alias or name
        values = [document[key] for document in documents if key in document]
        as_in_allow = path == "mcp.rules.deny." and key in Allow.model_fields
        if not values and key not in ALTERNATIVES and not as_in_allow:
            found.append(f"{path}{key}")
        for inner in sections(field.annotation):
            parts = [part for value in values for part in mappings(value, inner)]
            if parts:
                found += missing(inner, parts, f"{path}{key}.")
    return found


def sections(annotation: object) -> list[type[BaseModel]]:
    """The models inside an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in sections(part)]


def mappings(value: object, model: type[BaseModel]) -> list[dict[str, Any]]:
    """The mappings in a value that could be the model: itself, its items, its values."""
    keys = {field.alias or name for name, field in model.model_fields.items()}
    if isinstance(value, dict):
        if value and keys >= set(value):
            return [value]
        return [part for inner in value.values() for part in mappings(inner, model)]
    if isinstance(value, list):
        return [part for item in value for part in mappings(item, model)]
    return []
