"""Which configuration was this?

Lives here: the canonical form of a configuration without secret values, and its short hash.
Does not live here: where values came from (models.Origin).
"""

import hashlib
import json
from collections.abc import Mapping

from pydantic import BaseModel, SecretStr

from tidegate.config.addresses import LITERAL, without_secrets
from tidegate.config.models import Config
from tidegate.config.places import Path
from tidegate.config.rulefiles import RulesDir
from tidegate.config.sections.mcp import Allow


def revision(
    config: Config, references: Mapping[Path, str], rules_dir: RulesDir | None = None
) -> str:
    """Twelve hex digits that change when the effective configuration does.

    Values by reference count as the reference, literal secrets as the fact that there is one:
    a rotated secret keeps the revision, and the revision tells nothing about a secret.
    """
    form = canonical(config, references)
    if rules_dir is not None and rules_dir.files:
        # The same words under another name are another revision: they are for somebody else.
        form = [form, {tenant: file.digest for tenant, file in rules_dir.files.items()}]
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def canonical(value: object, references: Mapping[Path, str], path: Path = ()) -> object:
    """Plain values of a section, spelled as in the file, with references in place of secrets."""
    if path in references:
        return references[path]
    match value:
        case SecretStr():
            return LITERAL
        case BaseModel():
            items = _given(value, path)
            return {key: canonical(item, references, (*path, key)) for key, item in items.items()}
        case dict():
            return {key: canonical(item, references, (*path, key)) for key, item in value.items()}
        case tuple():
            return [canonical(item, references, (*path, index)) for index, item in enumerate(value)]
        case str():
            return without_secrets(value)
        case _:
            return value


def _given(section: BaseModel, path: Path) -> dict[str, object]:
    """Keys and values of a section; of overrides, alternatives and rules only what was given."""
    override = len(path) > 1 and path[-1] == "redaction"
    # In a rule a null is refused: whoever leaves a list empty seldom means everybody.
    alternatives = "json_schema_extra" in section.model_config or isinstance(section, Allow)
    return {
        found.alias or name: value
        for name, found in type(section).model_fields.items()
        if (value := getattr(section, name)) is not None or not alternatives
        if not override or name in section.model_fields_set
    }
