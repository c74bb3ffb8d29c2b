"""Which labeled texts are measured?

The two files of presidio-research (Microsoft, MIT license), as they are or with `.gz`:
`synth_dataset_v2.json` from its folder `data`, `generated_large.json` from `tests/data`. The
figures that the tests expect belong to the very files whose sums stand here.
"""

import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "data" / "presidio_research"
FILES = {
    "synth_dataset_v2.json": "ec08a771ba8135314cafb60752b2295212222ba3a4cd75d73811839c699e0012",
    "generated_large.json": "b84d6553a3fc27a5c664a1c2f95be15291ea16b83501e109d411fe237e380e26",
}
BROUGHT = {"generated_large.json"}
"""Files that are measured when somebody has put them there."""


@dataclass(frozen=True)
class Sample:
    """A text with its labels: (kind, start, end)."""

    text: str
    labels: tuple[tuple[str, int, int], ...]


def missing(folder: Path = FOLDER) -> list[str]:
    """The files that are not there, neither plain nor compressed."""
    return [name for name in FILES if not any(path.is_file() for path in _paths(folder, name))]


def load(name: str, folder: Path = FOLDER) -> list[Sample]:
    """The texts of one file; ValueError if it is not the file that the figures belong to."""
    path = next(path for path in _paths(folder, name) if path.is_file())
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if hashlib.sha256(raw).hexdigest() != FILES[name]:
        raise ValueError(f"{path} is not the {name} that the expected figures belong to")
    return [
        Sample(
            each["full_text"],
            tuple(
                (span["entity_type"], span["start_position"], span["end_position"])
                for span in each["spans"]
            ),
        )
        for each in json.loads(raw)
    ]


def _paths(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / name, folder / f"{name}.gz"
