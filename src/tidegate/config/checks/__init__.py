"""What is wrong although every single value fits?

Lives here: the rules between keys, one module for each kind. Each check reads a complete
configuration and writes to the findings; parts already known to be broken stay silent there.
"""

from tidegate.config.checks.commands import check_commands
from tidegate.config.checks.effect import check_effect
from tidegate.config.checks.federation import check_federation
from tidegate.config.checks.folders import check_folders
from tidegate.config.checks.names import check_names
from tidegate.config.checks.parameters import check_parameters
from tidegate.config.checks.pins import check_pins
from tidegate.config.checks.prices import check_prices
from tidegate.config.checks.reach import check_reach
from tidegate.config.checks.redaction import check_redaction
from tidegate.config.checks.rules_dir import check_rules_dir
from tidegate.config.checks.secrets import check_secrets
from tidegate.config.checks.shape import check_shape
from tidegate.config.checks.sharing import check_sharing
from tidegate.config.checks.shown_names import check_shown_names
from tidegate.config.checks.vault import check_vault
from tidegate.config.findings import Findings
from tidegate.config.models import Config
from tidegate.config.rulefiles import RulesDir

__all__ = ["check"]


def check(config: Config, findings: Findings, known: RulesDir | None = None) -> None:
    """Every rule between keys. `known` are the tenants' rules that a running gateway obeys."""
    check_shape(config, findings)
    check_parameters(config, findings)
    check_names(config, findings)
    check_federation(config, findings)
    check_shown_names(config, findings)
    check_reach(config, findings)
    check_sharing(config, findings)
    check_redaction(config, findings)
    check_vault(config, findings)
    check_secrets(config, findings)
    check_prices(config, findings)
    check_pins(config, findings)
    check_effect(config, findings)
    check_folders(config, findings)
    check_commands(config, findings)
    findings.rules_dir = check_rules_dir(config, findings, known)
