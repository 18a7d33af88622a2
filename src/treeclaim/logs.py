# SPDX-License-Identifier: Apache-2.0
"""Logging as oslo.log configures it."""

import logging

from oslo_log import log

from treeclaim.config import PROJECT, Configuration


def set_up(configuration: Configuration) -> None:
    """Start logging as the operator's options say."""
    log.setup(configuration.options, PROJECT)
    if configuration.options.log_options:
        configuration.options.log_opt_values(logging.getLogger(__name__), logging.DEBUG)
