# SPDX-License-Identifier: Apache-2.0
"""`openstack treeclaim mix set`, `show`, `list`, `delete` and `learn`."""

import argparse
from collections.abc import Mapping
from typing import Any

from osc_lib.command import command

from treeclaim.cli.cloud.changing.mixes import (
    add_learn_options,
    add_name,
    add_put_options,
    learned,
    put,
    weight_of,
)
from treeclaim.client.reports import Reports
from treeclaim.openstack_plugin.talking import Rows, Talking


def _rows(requests: Mapping[str, Mapping[str, Any]]) -> Rows:
    columns = ("Request", "Weight", "Query")
    return columns, (
        (name, request["weight"], request["query"]) for name, request in requests.items()
    )


class SetMix(Talking, command.Command):
    """Make or replace a mix."""

    add_options = staticmethod(add_put_options)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Put it."""
        put(self.client, parsed_args)


class ShowMix(Talking, command.Lister):
    """Show a mix."""

    add_options = staticmethod(add_name)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Return its requests."""
        return _rows(Reports(self.client).mix(parsed_args.name)["requests"])


class ListMixes(Talking, command.Lister):
    """List all mixes."""

    add_options = staticmethod(lambda _parser: None)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Return how many requests each has, and their weights added up."""
        del parsed_args
        found = Reports(self.client).mixes()
        rows = ((name, len(mix["requests"]), weight_of(mix)) for name, mix in found.items())
        return ("Mix", "Requests", "Weight"), rows


class DeleteMix(Talking, command.Command):
    """Delete a mix."""

    add_options = staticmethod(add_name)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete it."""
        Reports(self.client).delete_mix(parsed_args.name)


class LearnMix(Talking, command.Lister):
    """Make a mix of what consumers were placed by."""

    add_options = staticmethod(add_learn_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Put it, and return its requests."""
        requests = learned(self.client, parsed_args)
        Reports(self.client).put_mix(parsed_args.name, requests)
        return _rows(requests)
