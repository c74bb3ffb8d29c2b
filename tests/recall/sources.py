"""What is found in text on which nobody tuned anything: the sources of the standard library?"""

import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tidegate.redaction import RedactionPolicy

_NOT_MEASURED = {"site-packages", "test", "tests", "idle_test"}
# Top levels of the addresses that stand in the sources: real authors, mailing lists, examples.
_TOP = re.compile(
    r"\.(?:com|org|net|edu|au|de|fi|fr|nl|nz|no|pl|se|su|uk|at|is|ru|jp|ch|it|es|ca)$", re.I
)


@dataclass(frozen=True)
class Find:
    """One hit in one file; `shown` is the value, which is no secret of anybody."""

    file: str
    line: int
    rule: str
    shown: str

    @property
    def is_address(self) -> bool:
        """It is an e-mail address under a top level that exists."""
        return self.rule == "email" and _TOP.search(self.shown) is not None


def standard_library() -> Path:
    """The folder of the interpreter that runs this."""
    return Path(sysconfig.get_paths()["stdlib"])


def finds(root: Path, policy: RedactionPolicy) -> tuple[int, list[Find]]:
    """Characters read, and everything found, in the Python sources below `root`."""
    size, found = 0, []
    for path in sorted(root.rglob("*.py")):
        if _NOT_MEASURED & set(path.relative_to(root).parts):
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        size += len(text)
        found += [
            Find(
                str(path.relative_to(root)),
                text.count("\n", 0, span.start_in) + 1,
                span.detector,
                text[span.start_in : span.end_in],
            )
            for span in policy.scan(text)
        ]
    return size, found
