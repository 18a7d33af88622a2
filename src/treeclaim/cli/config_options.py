# SPDX-License-Identifier: Apache-2.0
"""The options of commands that work with a configuration; importing this reads nothing."""

import argparse


def add_config_options(command: argparse.ArgumentParser) -> None:
    """Add the options that name configuration files."""
    command.add_argument(
        "--config-file",
        action="append",
        default=[],
        metavar="PATH",
        help="a configuration file; may be repeated, later ones take precedence",
    )
    command.add_argument(
        "--config-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory with more configuration files",
    )
