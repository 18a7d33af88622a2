# SPDX-License-Identifier: Apache-2.0
"""`openstack placement place`, and `openstack treeclaim condition …`, `hold …` and `mix …`."""

import argparse
from collections.abc import Mapping
from typing import Any

from osc_lib.command import command

from treeclaim.cli.cloud.asking.question import query_of_options
from treeclaim.cli.cloud.changing import conditions, holds, mixes
from treeclaim.cli.cloud.changing.claims import add_placing_options, added_up, placed
from treeclaim.client.reports import Reports
from treeclaim.model.parts import CONDITIONS
from treeclaim.openstack_plugin.talking import Cell, Fields, Rows, Talking, amounts, lines


class SetCondition(Talking, command.ShowOne):
    """Give a provider a condition, which stops new allocations from it and all below it."""

    add_options = staticmethod(conditions.add_condition_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Fields:
        """Set it, or return what that would affect."""
        touched = conditions.give(self.client, parsed_args) or {}
        return tuple(touched), tuple(touched.values())


class UnsetCondition(Talking, command.Command):
    """Remove a condition from a provider."""

    add_options = staticmethod(conditions.add_key_options)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Take it."""
        conditions.take(self.client, parsed_args)


class ListConditions(Talking, command.Lister):
    """List the conditions of providers."""

    add_options = staticmethod(conditions.add_list_options)

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
            for row in conditions.listed(self.client, parsed_args)
            for key, shown in row[CONDITIONS.name].items()
        )


class CreateHolds(Talking, command.Lister):
    """Find room and keep it in holds, all or nothing."""

    add_options = staticmethod(holds.add_hold_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Make holds, and return where each is."""
        done = holds.held(self.client, query_of_options(parsed_args, self.compute), parsed_args)
        rows = (
            (
                placement.consumer,
                lines(placement.roots),
                amounts(added_up(placement.allocations.values())),
            )
            for placement in done.placements
        )
        return ("Hold", "Trees", "Has"), rows


class ListHolds(Talking, command.Lister):
    """List holds, with what is drawn from them."""

    add_options = staticmethod(holds.add_list_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Return the holds that pass the filters."""
        columns = ("Hold", "Project", "Has", "Drawn", "Until", "Returns", "Drawable By", "Note")
        return columns, (
            (
                hold["uuid"],
                hold["project_id"],
                amounts(holds.has(hold)),
                amounts(holds.drawn(hold)),
                hold["hold"]["until"],
                hold["hold"]["returns"],
                lines(hold["hold"]["projects"]),
                hold["hold"]["note"],
            )
            for hold in holds.listed(self.client, parsed_args)
        )


def _rows(requests: Mapping[str, Mapping[str, Any]]) -> Rows:
    columns = ("Request", "Weight", "Query")
    return columns, (
        (name, request["weight"], request["query"]) for name, request in requests.items()
    )


class SetMix(Talking, command.Command):
    """Make or replace a mix."""

    add_options = staticmethod(mixes.add_put_options)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Put it."""
        mixes.put(self.client, parsed_args)


class ShowMix(Talking, command.Lister):
    """Show a mix."""

    add_options = staticmethod(mixes.add_name)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Return its requests."""
        return _rows(Reports(self.client).mix(parsed_args.name)["requests"])


class ListMixes(Talking, command.Lister):
    """List all mixes."""

    add_options = staticmethod(lambda _parser: None)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Return how many requests each has, and their weights added up."""
        del parsed_args
        by_name = Reports(self.client).mixes()
        rows = (
            (name, len(mix["requests"]), mixes.weight_of(mix)) for name, mix in by_name.items()
        )
        return ("Mix", "Requests", "Weight"), rows


class DeleteMix(Talking, command.Command):
    """Delete a mix."""

    add_options = staticmethod(mixes.add_name)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete it."""
        Reports(self.client).delete_mix(parsed_args.name)


class LearnMix(Talking, command.Lister):
    """Make a mix from the stored requests of consumers."""

    add_options = staticmethod(mixes.add_learn_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Put it, and return its requests."""
        requests = mixes.learned(self.client, parsed_args)
        Reports(self.client).put_mix(parsed_args.name, requests)
        return _rows(requests)


class Place(Talking, command.Lister):
    """Find places for consumers and claim them, all or nothing."""

    add_options = staticmethod(add_placing_options)
    _has_unplaced = False

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Place; the exit code is 1 if some have no place."""
        code = super().run(parsed_args)
        return 1 if self._has_unplaced else code

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Place, and return where each consumer is; one without a place is in no tree."""
        query = query_of_options(parsed_args, self.compute)
        done = placed(self.client, query, parsed_args)
        self._has_unplaced = bool(done.unplaced)
        rows = [
            (
                placement.consumer,
                _trees(placement.roots),
                amounts(added_up(placement.allocations.values())),
                placement.held_before,
            )
            for placement in done.placements
        ]
        rows += [(consumer, _trees(()), amounts({}), False) for consumer in done.unplaced]
        return ("Consumer", "Trees", "Takes", "Was There"), iter(rows)


def _trees(names: tuple[str, ...]) -> Cell:
    return Cell(list(names), lambda trees: [", ".join(trees) or "no place"])
