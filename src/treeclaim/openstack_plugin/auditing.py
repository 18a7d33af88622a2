# SPDX-License-Identifier: Apache-2.0
"""`openstack placement audit`."""

import argparse
from collections.abc import Iterator
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from treeclaim.cli.cloud.auditing.audit import (
    CLEAN,
    FAILED,
    FINDINGS,
    add_audit_options,
    audited,
    in_words,
    living_of,
)
from treeclaim.openstack_plugin.columns import Told
from treeclaim.openstack_plugin.talking import Talking


class Audit(Talking, command.Lister):
    """List what is wrong with what is stored, and mend it.

    The exit status is 0 where nothing is found, 1 with findings, 2 for failures.
    """

    add_options = staticmethod(add_audit_options)
    _has_findings = False

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Look; the exit code tells what came of it."""
        try:
            super().run(parsed_args)
        except exceptions.CommandError as error:
            # The exit code of whatever raises would say that there are findings.
            self.app.stderr.write(f"{error}\n")
            return FAILED
        return FINDINGS if self._has_findings else CLEAN

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        """Look, mend what is asked for, and return each finding."""
        living = living_of(parsed_args, self.compute)
        found = audited(self.client, parsed_args, living)
        self._has_findings = any(findings["count"] for findings in found.values())
        for kind, findings in found.items():
            missing = findings["count"] - len(findings["items"])
            if missing:
                self.log.warning("%s: and %s more (--limit)", kind, missing)
        return ("Kind", "Finding"), (
            (kind, Told(item, lambda item: [in_words(item)]))
            for kind, findings in found.items()
            for item in findings["items"]
        )
