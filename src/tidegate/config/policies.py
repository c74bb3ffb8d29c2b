"""Which detectors does a redaction section come to, and for whom?

Lives here: from a section, its custom detectors and its deny lists to policies. Does not live
here: what the detectors do (redaction), reading files (denylists), modes (gateway).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidegate.config.denylists import DenyFiles
from tidegate.config.models import Config
from tidegate.config.sections.redaction import Custom, Redaction
from tidegate.redaction import FAMILIES, RedactionPolicy
from tidegate.redaction.custom import CustomDetector, detector
from tidegate.redaction.denylist import FAMILY, DenyList, Literals
from tidegate.redaction.tenants import TenantPolicies

if TYPE_CHECKING:
    from tidegate.redaction.spans import Action


def effective_redaction(section: Redaction, override: Redaction) -> Redaction:
    """`section` with the keys that `override` gives.

    Detectors and custom detectors are merged by name, so that an override which adds one never
    switches another off; every other key is replaced.
    """
    given = {key: getattr(override, key) for key in override.model_fields_set}
    if "detectors" in given:
        given["detectors"] = {**section.detectors, **override.detectors}
    if "custom" in given:
        kinds = {custom.kind for custom in override.custom}
        kept = tuple(custom for custom in section.custom if custom.kind not in kinds)
        given["custom"] = kept + override.custom
    return section.model_copy(update=given)


def server_redaction(config: Config, server: str) -> Redaction:
    """The effective Redaction section of one MCP server."""
    return effective_redaction(config.redaction, config.mcp.servers[server].redaction)


def custom_detector(custom: Custom) -> CustomDetector:
    """The detector that an entry of `custom` describes. Raises UnusableDetector."""
    return detector(
        custom.kind,
        prefix=custom.prefix,
        body=custom.body,
        min=custom.min,
        max=custom.max,
        regex=custom.regex,
        validate=custom.validator,
    )


class Policies:
    """Makes the policies of one configuration; lists that sections share are compiled once.

    `hash_key` keys the digests of the action "hash". Compiling a list costs some 5 us for each
    literal.
    """

    def __init__(self, deny_files: Mapping[str, DenyFiles], *, hash_key: bytes) -> None:
        self._files = deny_files
        self._hash_key = hash_key
        self._compiled: dict[tuple[str, str | None], Literals] = {}

    def of(self, section: Redaction) -> TenantPolicies:
        """The policies of an effective section. Raises ValueError for one that was not checked."""
        base = _policy(section).with_hash_key(self._hash_key)
        setting = section.detectors.get(FAMILY)
        action: Action | None = "mask"
        if setting is not None:
            action = None if setting.action == "off" else setting.action
        if action is None or not section.deny_list:
            return TenantPolicies(base)
        shared = [
            self._literals(name, None) for name in section.deny_list if self._files[name].everybody
        ]
        tenants = sorted({who for name in section.deny_list for who in self._files[name].tenants})
        everybody = base.with_detectors(DenyList(*shared), action=action) if shared else base
        return TenantPolicies(
            everybody,
            {
                tenant: base.with_detectors(
                    DenyList(*shared, *self._of_tenant(section, tenant)), action=action
                )
                for tenant in tenants
            },
        )

    def _of_tenant(self, section: Redaction, tenant: str) -> list[Literals]:
        names = [name for name in section.deny_list if tenant in self._files[name].tenants]
        return [self._literals(name, tenant) for name in names]

    def _literals(self, name: str, tenant: str | None) -> Literals:
        made = self._compiled.get((name, tenant))
        if made is None:
            files = self._files[name]
            made = Literals(files.everybody if tenant is None else files.tenants[tenant])
            self._compiled[name, tenant] = made
        return made


def _policy(section: Redaction) -> RedactionPolicy:
    """Everything but the lists, whose values differ from tenant to tenant."""
    actions: dict[str, Action | None] = {
        name: None if setting.action == "off" else setting.action
        for name, setting in section.detectors.items()
        if name in FAMILIES
    }
    policy = RedactionPolicy.preset(section.preset).with_actions(actions)
    for name, setting in section.detectors.items():
        if setting.regions:
            policy = policy.with_regions(name, *setting.regions)
    for custom in section.custom:
        if custom.action != "off":
            policy = policy.with_detectors(custom_detector(custom), action=custom.action)
    return policy.with_allow(*section.allow)
