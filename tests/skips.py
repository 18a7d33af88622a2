# SPDX-License-Identifier: Apache-2.0
"""Allowed reasons of skips; any other skip fails the run."""

from tests.resources import MISSING

REASONS = (
    "SQLite has one lock",
    "SQLite has one writer at a time",
    "PostgreSQL lets everybody wait without end",
    "one writes at a time",
    "the database has no cheap number",
    "this Python has no shared library, which mod_wsgi could load",
)


def why_not_allowed(reason: str, *, may_lack: bool) -> str:
    """Return why a skip fails the run; empty if it is allowed.

    Args:
        reason: Reason of the skip.
        may_lack: Whether requested software may be missing.
    """
    if reason.startswith(MISSING):
        return "" if may_lack else f"this machine lacks what the test needs: {reason}"
    return "" if reason in REASONS else f"not a reason listed in tests/skips.py: {reason}"
