# SPDX-License-Identifier: Apache-2.0
"""What all commands of the plugin have in common."""

import argparse
from collections.abc import Callable

from keystoneauth1.adapter import Adapter
from osc_lib import exceptions
from osc_lib.command import command

from treeclaim.cli.cloud.compute import compute_in
from treeclaim.cli.output import CommandError
from treeclaim.client import Client, ClientError


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
            raise exceptions.CommandError(str(error)) from error

    @property
    def client(self) -> Client:
        """What talks to the placement endpoint."""
        found: Client = self.app.client_manager.treeclaim  # type: ignore[attr-defined]
        return found

    def compute(self) -> Adapter:
        """Return what talks to the compute API."""
        manager = self.app.client_manager
        return compute_in(manager.sdk_connection.config, manager.session)
