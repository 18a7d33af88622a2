# SPDX-License-Identifier: Apache-2.0
"""`openstack treeclaim condition set`, `unset` and `list`."""

import argparse

from osc_lib.command import command

from treeclaim.cli.cloud.changing.conditions import (
    add_condition_options,
    add_key_options,
    add_list_options,
    give,
    listed,
    take,
)
from treeclaim.model.parts import CONDITIONS
from treeclaim.openstack_plugin.talking import Fields, Rows, Talking


class SetCondition(Talking, command.ShowOne):
    """Give a provider a condition, under which it and all below it give nothing new."""

    add_options = staticmethod(add_condition_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Fields:
        """Put it, or return what it would touch."""
        found = give(self.client, parsed_args) or {}
        return tuple(found), tuple(found.values())


class UnsetCondition(Talking, command.Command):
    """Take a condition from a provider."""

    add_options = staticmethod(add_key_options)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Take it."""
        take(self.client, parsed_args)


class ListConditions(Talking, command.Lister):
    """List the conditions of providers."""

    add_options = staticmethod(add_list_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Return the conditions that there are."""
        columns = ("Provider", "UUID", "Condition", "Effect", "Until", "Began", "Reason")
        return columns, (
            (
                row["name"],
                row["uuid"],
                key,
                shown["effect"],
                shown["until"],
                shown["began"],
                shown["reason"],
            )
            for row in listed(self.client, parsed_args)
            for key, shown in row[CONDITIONS.name].items()
        )
