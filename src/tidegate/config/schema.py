"""Which JSON Schema lets an editor check and complete the file while it is written?

Lives here: the schema made from the models, cut down to what editors use. Does not live here:
the rules between keys, which a schema cannot express (checks).
"""

from tidegate.config.models import Config

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, object]:
    """The schema of the whole file. Keys, types, bounds, words and a line about every key."""
    made = Config.model_json_schema(by_alias=True)
    schema = _plain(made)
    assert isinstance(schema, dict)  # noqa: S101 - it was one
    return {"$schema": DIALECT, "title": "tidegate.yaml", **schema}


def _plain(node: object, *, names: bool = False) -> object:
    """The node without generated titles and formats; `names`: its keys are the file's own."""
    if isinstance(node, dict):
        return {
            key: _plain(value, names=key in ("properties", "$defs") and not names)
            for key, value in node.items()
            if names or key not in ("title", "writeOnly", "format")
        }
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return node
