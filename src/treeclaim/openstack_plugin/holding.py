# SPDX-License-Identifier: Apache-2.0
"""`openstack treeclaim hold create` and `list`."""

import argparse

from osc_lib.command import command

from treeclaim.cli.cloud.asking.question import query_of_options
from treeclaim.cli.cloud.changing.holds import (
    add_hold_options,
    add_list_options,
    drawn,
    has,
    held,
    listed,
)
from treeclaim.cli.cloud.changing.place import sums
from treeclaim.openstack_plugin.talking import Rows, Talking, amounts, lines


class CreateHolds(Talking, command.Lister):
    """Find room and keep it in holds, all or nothing."""

    add_options = staticmethod(add_hold_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Make holds, and return where each is."""
        done = held(self.client, query_of_options(parsed_args, self.compute), parsed_args)
        rows = (
            (placement.consumer, lines(placement.roots), amounts(sums(placement)))
            for placement in done.placements
        )
        return ("Hold", "Trees", "Has"), rows


class ListHolds(Talking, command.Lister):
    """List holds, with what is drawn from them."""

    add_options = staticmethod(add_list_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Return the holds that pass the filters."""
        columns = ("Hold", "Project", "Has", "Drawn", "Until", "Returns", "Drawable By", "Note")
        return columns, (
            (
                hold["uuid"],
                hold["project_id"],
                amounts(has(hold)),
                amounts(drawn(hold)),
                hold["hold"]["until"],
                hold["hold"]["returns"],
                lines(hold["hold"]["projects"]),
                hold["hold"]["note"],
            )
            for hold in listed(self.client, parsed_args)
        )
