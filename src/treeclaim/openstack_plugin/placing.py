# SPDX-License-Identifier: Apache-2.0
"""`openstack placement place`."""

import argparse

from osc_lib.command import command

from treeclaim.cli.cloud.asking.question import query_of_options
from treeclaim.cli.cloud.changing.place import add_placing_options, placed, sums
from treeclaim.openstack_plugin.talking import Cell, Rows, Talking, amounts


class Place(Talking, command.Lister):
    """Find places for consumers and claim them, all or nothing."""

    add_options = staticmethod(add_placing_options)
    _has_unplaced = False

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Place; the exit code is 1 where some have no place."""
        code = super().run(parsed_args)
        return 1 if self._has_unplaced else code

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Place, and return where each consumer is; who has no place is in no tree."""
        query = query_of_options(parsed_args, self.compute)
        done = placed(self.client, query, parsed_args)
        self._has_unplaced = bool(done.unplaced)
        rows = [
            (
                placement.consumer,
                _trees(placement.roots),
                amounts(sums(placement)),
                placement.held_before,
            )
            for placement in done.placements
        ]
        rows += [(consumer, _trees(()), amounts({}), False) for consumer in done.unplaced]
        return ("Consumer", "Trees", "Takes", "Was There"), iter(rows)


def _trees(names: tuple[str, ...]) -> Cell:
    return Cell(list(names), lambda trees: [", ".join(trees) or "no place"])
