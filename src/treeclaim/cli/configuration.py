# SPDX-License-Identifier: Apache-2.0
"""The configuration that a command works with."""

import argparse

from treeclaim import config
from treeclaim.cli.output import CommandError


def configuration_of(options: argparse.Namespace) -> config.Configuration:
    """Load the configuration that a command's options name."""
    try:
        return config.load(config_files=options.config_file, config_dirs=options.config_dir)
    except config.ConfigurationError as error:
        raise CommandError(*error.lines) from error
