"""What does the loader say about each file of the corpus?

`python -m tests.unit.config.corpus` writes the expected messages anew; read every one of them
before committing: would a newcomer know what to write instead?
"""

from pathlib import Path

from tidegate.config import Config, ConfigInvalid, load_config_text

CORPUS = Path(__file__).parents[2] / "data" / "config"
BROKEN = sorted((CORPUS / "broken").glob("*.yaml"))
VALID = sorted((CORPUS / "valid").glob("*.yaml"))

ENVIRON = {
    "ACME_KEY": "acme-" + "k" * 20,
    "ADMIN_TOKEN": "admin-" + "t" * 20,
    "BACKEND_TOKEN": "backend-" + "t" * 20,
    "BACKUP_KEY": "backup-" + "k" * 20,
    "EMPTY": "",
    "PORT": "8080",
    "PRIMARY_KEY": "primary-" + "k" * 20,
    "REGION": "eu",
}


def load(path: Path) -> Config:
    """The file under its bare name, with the environment of the corpus."""
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    return load_config_text(text, ENVIRON, name=path.name, folder=path.parent)


def messages(path: Path) -> str:
    """Everything that is said about the file, one finding a line."""
    try:
        config = load(path)
    except ConfigInvalid as invalid:
        return "".join(f"{problem}\n" for problem in invalid.problems)
    lines = [f"warning: {warning}" for warning in config.warnings]
    lines += [str(idle) for idle in config.not_in_effect]
    return "".join(f"{line}\n" for line in lines)


def expected(path: Path) -> Path:
    """Where the messages of a file are kept."""
    return path.with_suffix(".expected")


def main() -> None:
    """Write all expected messages anew."""
    for path in (*BROKEN, *VALID):
        expected(path).write_text(messages(path), encoding="utf-8")


if __name__ == "__main__":
    main()
