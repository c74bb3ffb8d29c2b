"""Are the directories there in which the gateway keeps its files?

Only a warning: they may be made between the check and the start. Does not live here: the look
itself (config.folders), the form of the names (shape).
"""

from tidegate.config.findings import Findings
from tidegate.config.folders import folder_fault, store_file
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted


def check_folders(config: Config, findings: Findings) -> None:
    """Warn of every file that could not be made now."""
    files: tuple[tuple[Path, str | None], ...] = (
        (("store", "url"), store_file(config.store.url)),
        (("records", "path"), config.records.path),
    )
    for path, file in files:
        if file is None or findings.touched(path):
            continue
        if (fault := folder_fault(file)) is not None:
            name = quoted(fault.folder, limit=200, mark="")
            # What came by reference is nobody's business but its owner's.
            where = "of this file" if path in findings.references else name
            findings.warn(path, f"the directory {where} {fault.wrong}", fault.right)
