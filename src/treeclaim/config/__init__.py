# SPDX-License-Identifier: Apache-2.0
"""The configuration: its options, their values, and where each value comes from.

Options come from `placement.conf` and from the environment (`OS_<GROUP>__<OPTION>`). Sections and
unknown options are ignored, so a file written for Placement works as it is.
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
