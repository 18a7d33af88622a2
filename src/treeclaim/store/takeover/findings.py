# SPDX-License-Identifier: Apache-2.0
"""Findings of a database check."""

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """Severity; the worst one is the exit code of `treeclaim db check`."""

    OK = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: a statement about a table or setting, and the remedy, which may be empty."""

    level: Level
    subject: str
    text: str
    remedy: str = ""


def make_success(subject: str, text: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(Level.OK, subject, text)


def make_warning(subject: str, text: str, remedy: str) -> Finding:
    """Return a finding that does not prevent a takeover."""
    return Finding(Level.WARNING, subject, text, remedy)


def make_failure(subject: str, text: str, remedy: str) -> Finding:
    """Return a finding that prevents a takeover."""
    return Finding(Level.ERROR, subject, text, remedy)
