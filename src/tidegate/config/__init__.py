"""What did the operator ask for, and where is it wrong?

The file becomes a frozen tree (models, sections) by load; values turns that tree into the frozen
values of the floors below. Nothing here runs inside a request.
"""

from tidegate.config.addresses import without_secrets
from tidegate.config.demo_world import DemoPorts
from tidegate.config.errors import ConfigInvalid, NotInEffect, Problem
from tidegate.config.exposure import exposure_problems, missing_packages, serving_problems
from tidegate.config.folders import folder_fault, on_redis, store_file
from tidegate.config.load import Overrides, find_config, load_config, load_config_text
from tidegate.config.models import Config
from tidegate.config.shapes import is_loopback
from tidegate.config.takeover import as_taken_over, reload_problems, restart_parts

__all__ = [
    "Config",
    "ConfigInvalid",
    "DemoPorts",
    "NotInEffect",
    "Overrides",
    "Problem",
    "as_taken_over",
    "exposure_problems",
    "find_config",
    "folder_fault",
    "is_loopback",
    "load_config",
    "load_config_text",
    "missing_packages",
    "on_redis",
    "reload_problems",
    "restart_parts",
    "serving_problems",
    "store_file",
    "without_secrets",
]
