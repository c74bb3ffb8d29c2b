"""Will every detector of the file find something, and can its lists be read?

Lives here: names and countries of detectors, custom detectors, deny lists, values that would let
everything pass; in the redaction part and in everything that overrides it. Does not live here:
what makes a custom detector unusable (redaction.custom), reading lists (denylists).
"""

from tidegate.config.checks.effect import redactions
from tidegate.config.denylists import MARK, DenyFiles, file_of, read_deny_files
from tidegate.config.findings import Findings, join
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted
from tidegate.config.policies import custom_detector
from tidegate.config.sections.redaction import Custom, Redaction
from tidegate.config.wording import nearest
from tidegate.redaction import FAMILIES
from tidegate.redaction.custom import UnusableDetector
from tidegate.redaction.denylist import FAMILY as DENY_LIST
from tidegate.redaction.detectors import KNOWN_REGIONS


def check_redaction(config: Config, findings: Findings) -> None:
    """Everything about redaction; what the lists hold goes to `findings.deny_files`."""
    for path, section in redactions(config):
        _detectors(section, path, findings)
        _custom(section, path, findings)
        _allow(section, path, findings)
        for index, name in enumerate(section.deny_list):
            _deny_list(name, (*path, "deny_list", index), config, findings)


def _detectors(section: Redaction, path: Path, findings: Findings) -> None:
    kinds = [custom.kind.lower() for custom in section.custom]
    for name, setting in section.detectors.items():
        place: Path = (*path, "detectors", name)
        if name not in FAMILIES and name != DENY_LIST:
            close = nearest(name, (*FAMILIES, DENY_LIST))
            right = f"did you mean {quoted(close)}?" if close else f"there are {join(FAMILIES)}"
            if name == "custom":
                right = "write `action` in each entry under `redaction.custom`"
            if name.lower() in kinds:
                right = "write `action` in its entry under `custom`"
            findings.error(place, f"{quoted(name)} is not a detector", right, at_key=True)
        elif setting.regions:
            _regions(name, setting.regions, (*place, "regions"), findings)


def _regions(name: str, regions: tuple[str, ...], path: Path, findings: Findings) -> None:
    known = KNOWN_REGIONS.get(name)
    if known is None:
        wrong = f"the detector {quoted(name)} is the same everywhere"
        findings.error(path, wrong, "remove this line", at_key=True)
        return
    for index, region in enumerate(regions):
        if region not in known:
            right = f"{name} knows {join(known)}"
            if (upper := region.upper()) in known:
                right = f"write {upper}"
            findings.error((*path, index), f"{quoted(region)} is not a country here", right)


def _custom(section: Redaction, path: Path, findings: Findings) -> None:
    seen: dict[str, Path] = {}
    for index, custom in enumerate(section.custom):
        place: Path = (*path, "custom", index)
        if findings.touched(place):
            continue
        if (other := seen.get(custom.kind)) is not None:
            line = findings.places.of_value(other).line
            wrong = f"the kind {quoted(custom.kind)} is taken (line {line})"
            findings.error((*place, "kind"), wrong, "rename one of the two")
        seen.setdefault(custom.kind, (*place, "kind"))
        _description(custom, place, findings)


def _description(custom: Custom, path: Path, findings: Findings) -> None:
    try:
        custom_detector(custom)
    except UnusableDetector as unusable:
        wrong, right = unusable.wrong, unusable.right
        if not unusable.key:
            findings.error(path, wrong, right)
            return
        value = getattr(custom, "validator" if unusable.key == "validate" else unusable.key)
        if isinstance(value, str) and unusable.key in ("kind", "validate"):
            wrong = f"{quoted(value)} is {wrong}" if wrong.startswith("not ") else wrong
        if unusable.at is not None and isinstance(value, str):
            wrong += f" (at character {unusable.at + 1})"
        at_key = value is None or "exclude" in wrong
        findings.error((*path, unusable.key), wrong, right, at_key=at_key)


def _allow(section: Redaction, path: Path, findings: Findings) -> None:
    for index, value in enumerate(section.allow):
        if not value.strip("*?"):
            findings.error(
                (*path, "allow", index),
                f"{quoted(value)} would let everything pass" if value else "this value is empty",
                "write the values that stay, or switch a mode off, such as `response: off`",
            )


def _deny_list(name: str, path: Path, config: Config, findings: Findings) -> None:
    if findings.inside_broken(path):
        return
    known = findings.deny_files.get(name)
    files = known if known is not None else read_deny_files(name, findings.folder)
    findings.deny_files[name] = files
    for fault in files.faults:
        report = findings.error if fault.grave else findings.warn
        report(path, fault.wrong, fault.right)
    if MARK in name and not files.faults:
        _tenants_without_file(name, files, path, config, findings)
    if MARK not in name and not files.everybody and not files.faults:
        findings.warn(path, "no literal stands in this file", "write one a line")


def _tenants_without_file(
    name: str, files: DenyFiles, path: Path, config: Config, findings: Findings
) -> None:
    """Warn of tenants with a key for whom nothing is denied: a slip in a file name is silent."""
    identity = config.identity
    callers = [*identity.keys, *([identity.anonymous] if identity.anonymous else [])]
    for tenant in sorted({caller.tenant for caller in callers} - set(files.tenants)):
        findings.warn(
            path,
            f"the tenant {quoted(tenant)} has no file",
            f"create {quoted(file_of(name, tenant), limit=200, mark='')}, empty if it needs none",
        )


__all__ = ["check_redaction"]
