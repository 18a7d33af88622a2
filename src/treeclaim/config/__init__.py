# SPDX-License-Identifier: Apache-2.0
"""The configuration: options, their values, and the source of each value.

Options come from `placement.conf` and from the environment (`OS_<GROUP>__<OPTION>`). Unknown sections and
options are ignored, so a file for Placement works unchanged.
"""

from treeclaim.config.configuration import (
    CONFIG_DIR_VARIABLE,
    PROJECT,
    Address,
    Configuration,
    ConfigurationError,
    load,
    require_valid_values,
)
from treeclaim.config.effective import (
    EffectiveOption,
    OptionGroups,
    all_options,
    effective_options,
)
from treeclaim.config.options import WITHOUT_EFFECT, list_options

__all__ = [
    "CONFIG_DIR_VARIABLE",
    "PROJECT",
    "WITHOUT_EFFECT",
    "Address",
    "Configuration",
    "ConfigurationError",
    "EffectiveOption",
    "OptionGroups",
    "all_options",
    "effective_options",
    "list_options",
    "load",
    "require_valid_values",
]
