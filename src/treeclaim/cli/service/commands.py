# SPDX-License-Identifier: Apache-2.0
"""Commands that maintain a service. Their functions are in modules that take seconds to import; a help needs none."""

import argparse
from importlib import import_module
from typing import ClassVar

from treeclaim.cli.arguments import CONFIG_OPTIONS, DeclaredCommand

_HEAD = "a082b8bb98d0"
"""Revision of the Placement schema (contract page 85)."""


class _ServiceCommand(DeclaredCommand):
    """A command that imports its function, `module:function` in this package, when it runs."""

    function: ClassVar[str]
    arguments = CONFIG_OPTIONS

    def __init_subclass__(cls, function: str) -> None:
        cls.function = function

    def execute(self, options: argparse.Namespace) -> int | None:
        module, _, name = self.function.partition(":")
        run = getattr(import_module(f"treeclaim.cli.service.{module}"), name)
        status: int | None = run(options)
        return status


class SyncDatabase(_ServiceCommand, function="database:sync"):
    """Upgrade the schema to the newest revision."""


class ShowVersion(_ServiceCommand, function="database:show_version"):
    """Print the revision of the Placement schema."""


class StampDatabase(_ServiceCommand, function="database:stamp"):
    """Record a revision without migrating the schema."""

    example = _HEAD
    arguments = f"""
        VERSION  the revision
        {CONFIG_OPTIONS}
    """


class MigrateOnline(_ServiceCommand, function="database:migrate_online"):
    """Fill in the columns that older rows lack."""

    example = "--max-count 1000"
    arguments = f"""
        --max-count COUNT  migrate at most this many records, then stop (default: all)
        {CONFIG_OPTIONS}
    """


class PruneDatabase(_ServiceCommand, function="database:prune"):
    """Delete rows that the change feed no longer needs."""

    example = "--keep-hours 48"
    # The default of the service; a shorter time expires clients' cursors within a day.
    arguments = f"""
        --keep-hours HOURS = 25  age of the rows to keep
        {CONFIG_OPTIONS}
    """


class ResetFeed(_ServiceCommand, function="database:reset_feed"):
    """Make every worker and every watcher load everything again.

    Use it after rows were changed by hand, or only some tables were restored.
    """


class CheckDatabase(_ServiceCommand, function="database:check_takeover"):
    """Check whether the database can be taken over. Nothing is changed.

    Exit status: 0 if it can, 1 for warnings, 2 for errors.
    """

    example = "--config-file /etc/placement/placement.conf"


class CheckUpgrade(_ServiceCommand, function="database:check_upgrade"):
    """Check whether an upgrade needs preparation.

    Exit status: 0 if not, 1 for warnings, 2 for failures, 255 if the check failed.
    """

    failure_status = 255


class PrintConfigSample(_ServiceCommand, function="configured:print_config_sample"):
    """Print a commented placement.conf."""

    arguments = ""


class PrintPolicySample(_ServiceCommand, function="configured:print_policy_sample"):
    """Print a commented policy.yaml."""

    arguments = ""


class CheckConfig(_ServiceCommand, function="configured:check"):
    """Check the configuration, and print the options in effect with the places that set them.

    Exit status: 0 if the service can use it, 1 for errors.
    """

    example = "--config-file /etc/placement/placement.conf"
    arguments = f"""
        --all  also print default values
        {CONFIG_OPTIONS}
    """
