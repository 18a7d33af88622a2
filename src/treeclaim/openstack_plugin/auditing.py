# SPDX-License-Identifier: Apache-2.0
"""`openstack placement audit`."""

import argparse

from treeclaim.cli.cloud.auditing.audit import (
    CLEAN,
    FINDINGS,
    add_audit_options,
    audited,
    in_words,
    living_of,
)
from treeclaim.openstack_plugin.talking import Cell, Rows, StatusLister


class Audit(StatusLister):
    """List what is wrong with what is stored, and mend it.

    The exit status is 0 where nothing is found, 1 with findings, 2 for failures.
    """

    add_options = staticmethod(add_audit_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Look, mend what is asked for, and return each finding."""
        living = living_of(parsed_args, self.compute)
        found = audited(self.client, parsed_args, living)
        self.status = FINDINGS if any(part["count"] for part in found.values()) else CLEAN
        for kind, findings in found.items():
            missing = findings["count"] - len(findings["items"])
            if missing:
                self.log.warning("%s: and %s more (--limit)", kind, missing)
        return ("Kind", "Finding"), (
            (kind, Cell(item, lambda item: [in_words(item)]))
            for kind, findings in found.items()
            for item in findings["items"]
        )
