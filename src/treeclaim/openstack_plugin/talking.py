# SPDX-License-Identifier: Apache-2.0
"""What all commands of the plugin have in common."""

import argparse
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from keystoneauth1.adapter import Adapter
from osc_lib import exceptions
from osc_lib.command import command

from treeclaim.cli.cloud.compute import compute_in
from treeclaim.cli.cloud.planning.given import FAILED
from treeclaim.cli.output import CommandError
from treeclaim.client import Client, ClientError
from treeclaim.model.texts import one_line
from treeclaim.openstack_plugin.columns import cell_for

Rows = tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]
"""Names of columns, and a row for each thing."""

Fields = tuple[tuple[str, ...], tuple[Any, ...]]
"""Names of fields, and a value for each."""


class Talking(command.Command):
    """A command that talks to the cloud with the login of the `openstack` command."""

    add_options: Callable[[argparse.ArgumentParser], None]
    """Adds the options that the `treeclaim` command of the same name has."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser, with the options of the formatters too."""
        parser = super().get_parser(prog_name)
        type(self).add_options(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        Raises:
            osc_lib.exceptions.CommandError: for whatever fails in words.
        """
        try:
            return super().run(parsed_args)
        except (ClientError, CommandError) as error:
            lines = error.lines if isinstance(error, CommandError) else (str(error),)
            raise exceptions.CommandError("\n".join(map(one_line, lines))) from error

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any
    ) -> int:
        """Print what the command returned; names in it that somebody else wrote can only be read."""
        cell = functools.partial(cell_for, parsed_args.formatter)
        safe = (
            list(map(cell, data))
            if isinstance(self, command.ShowOne)
            else (list(map(cell, row)) for row in data)
        )
        code: int = super().produce_output(parsed_args, column_names, safe)  # type: ignore[misc]
        return code

    @property
    def client(self) -> Client:
        """What talks to the placement endpoint."""
        found: Client = self.app.client_manager.treeclaim  # type: ignore[attr-defined]
        return found

    def compute(self) -> Adapter:
        """Return what talks to the compute API."""
        manager = self.app.client_manager
        return compute_in(manager.sdk_connection.config, manager.session)


class StatusLister(Talking, command.Lister):
    """A command whose exit status tells what came of it, as that of the `treeclaim` command does.

    Attributes:
        status: The exit status, which `take_action` sets.
    """

    status = FAILED

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; whatever fails in words has an exit status of its own."""
        try:
            super().run(parsed_args)
        except exceptions.CommandError as error:
            # The exit status of whatever raises would be that of a bad answer.
            self.app.stderr.write(f"{error}\n")
            return FAILED
        return self.status
