"""Does the code that the pages show run?"""

import ast
import re
from pathlib import Path

import pytest
import yaml

from tests.test_examples import ENVIRON
from tidegate.config import load_config_text

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    """Name and text of each fenced block of a language."""
    found = []
    for page in PAGES:
        pattern = rf"^```{language}\n(.*?)^```"
        for number, text in enumerate(re.findall(pattern, page.read_text(), re.S | re.M), 1):
            found.append((f"{page.name}-{number}", text))
    return found


@pytest.mark.parametrize(("name", "text"), blocks("python"))
def test_each_python_block_is_python(name: str, text: str) -> None:
    ast.parse(text, filename=name)


def test_the_library_example_gives_what_it_says() -> None:
    text = next(
        text
        for name, text in blocks("python")
        if name.startswith("README.md") and "RedactionPolicy" in text
    )
    names: dict[str, object] = {}
    exec(compile(text, "README.md", "exec"), names)  # noqa: S102 - our own page
    assert names["text"] == "mail [REDACTED_EMAIL]"
    shown = re.search(r"policy\.redact\((.*?)\)\.text +# '(.*)'", text)
    assert shown is not None
    policy = names["policy"]
    assert policy.redact(ast.literal_eval(shown[1])).text == shown[2]  # type: ignore[attr-defined]


def test_the_detector_of_ones_own_finds_what_the_page_says() -> None:
    text = next(text for name, text in blocks("python") if name.startswith("redaction.md"))
    exec(compile(text, "redaction.md", "exec"), {})  # noqa: S102 - our own page


@pytest.mark.parametrize(("name", "text"), blocks("yaml"))
def test_each_configuration_on_a_page_is_valid(name: str, text: str) -> None:
    tree = yaml.safe_load(text)
    assert isinstance(tree, dict)
    if "identity" not in tree:
        text += "identity: { anonymous: { principal: guest, tenant: demo, roles: [guest] } }\n"
    config = load_config_text(text, {**ENVIRON, "MY_KEY": "k" * 32}, name=name)
    assert config.warnings == ()


def test_every_link_to_a_file_leads_somewhere() -> None:
    broken = []
    pages = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in link and not (page.parent / link).exists():
                broken.append(f"{page.name}: {link}")
    assert broken == []
