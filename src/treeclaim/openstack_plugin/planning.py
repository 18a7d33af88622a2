# SPDX-License-Identifier: Apache-2.0
"""`openstack treeclaim survival`."""

import argparse
from collections.abc import Iterator
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from treeclaim.cli.cloud.planning.given import FAILED
from treeclaim.cli.cloud.planning.survival import (
    add_survival_options,
    asked,
    status_of,
    summary_of,
)
from treeclaim.openstack_plugin.talking import Talking


class Survival(Talking, command.Lister):
    """List which failures are not survived.

    The exit status is 0 where all are survived, 1 where not, 2 for failures.
    """

    add_options = staticmethod(add_survival_options)
    _status = FAILED

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Ask; the exit code tells what came of it."""
        try:
            super().run(parsed_args)
        except exceptions.CommandError as error:
            # The exit code of whatever raises would say that something is not survived.
            self.app.stderr.write(f"{error}\n")
            return FAILED
        return self._status

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        """Ask, and return each failure."""
        found = asked(self.client, parsed_args)
        self._status = status_of(found)
        self.log.warning("%s", summary_of(found))
        columns = (
            *("Domain", "Consumers", "Without Request", "Survives", "Unplaced"),
            *("First Unplaced", "Proven"),
        )
        return columns, (
            (
                one["name"] or one["uuid"],
                one["consumers"],
                one["without_request"],
                one["survives"],
                one["unplaced"],
                one["first_unplaced"],
                one["proven"],
            )
            for one in found["domains"]
        )
