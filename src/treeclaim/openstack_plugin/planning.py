# SPDX-License-Identifier: Apache-2.0
"""`openstack placement audit`, and `openstack treeclaim survival`, `drain`, `make room` and `defragment`."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from treeclaim.cli.cloud import moves
from treeclaim.cli.cloud.audit import (
    CLEAN,
    FINDINGS,
    add_audit_options,
    audited,
    in_words,
    living_of,
)
from treeclaim.cli.cloud.survival import (
    add_survival_options,
    asked,
    status_of,
    summary_of,
)
from treeclaim.client import Client
from treeclaim.openstack_plugin.talking import Cell, Rows, StatusLister


class Survival(StatusLister):
    """List which failures are not survived.

    The exit status is 0 if all are survived, 1 if not, 2 if the command failed.
    """

    add_options = staticmethod(add_survival_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Ask, and return each failure."""
        survival = asked(self.client, parsed_args)
        self.status = status_of(survival)
        self.log.warning("%s", summary_of(survival))
        columns = (
            *("Domain", "Consumers", "Without Request", "Survives", "Unplaced"),
            *("First Unplaced", "Proven"),
        )
        return columns, (
            (
                domain["name"] or domain["uuid"],
                domain["consumers"],
                domain["without_request"],
                domain["survives"],
                domain["unplaced"],
                domain["first_unplaced"],
                domain["proven"],
            )
            for domain in survival["domains"]
        )


class _Moves(StatusLister):
    """Steps of a plan."""

    goal: Callable[[Client, argparse.Namespace], Mapping[str, Any]]

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Ask, and return each step."""
        plan = moves.asked(self.client, type(self).goal, parsed_args)
        self.status = moves.status_of(plan)
        self.log.warning("%s", moves.summary_of(plan))
        return ("Step", "Consumer", "From", "To"), moves.rows_of(plan)


class Drain(_Moves):
    """List the moves that empty hosts. Exit status: 0 if they are emptied, 1 if not, 2 if the command failed."""

    add_options = staticmethod(moves.add_drain_options)
    goal = staticmethod(moves.goal_of_drain)


class MakeRoom(_Moves):
    """List the moves that make room for more. Exit status: 0 if it fits, 1 if not, 2 if the command failed."""

    add_options = staticmethod(moves.add_room_options)
    goal = staticmethod(moves.goal_of_room)


class Defragment(_Moves):
    """List the moves that make most room for a mix. Exit status: 0, or 2 if the command failed."""

    add_options = staticmethod(moves.add_defragment_options)
    goal = staticmethod(moves.goal_of_defragment)


class Audit(StatusLister):
    """List what is wrong with the records, and repair it.

    The exit status is 0 if nothing was found, 1 for findings, 2 if the command failed.
    """

    add_options = staticmethod(add_audit_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Audit, repair what is asked for, and return each finding."""
        living = living_of(parsed_args, self.compute)
        by_kind = audited(self.client, parsed_args, living)
        self.status = FINDINGS if any(part["count"] for part in by_kind.values()) else CLEAN
        for kind, findings in by_kind.items():
            missing = findings["count"] - len(findings["items"])
            if missing:
                self.log.warning("%s: and %s more (--limit)", kind, missing)
        return ("Kind", "Finding"), (
            (kind, Cell(item, lambda item: [in_words(item)]))
            for kind, findings in by_kind.items()
            for item in findings["items"]
        )
