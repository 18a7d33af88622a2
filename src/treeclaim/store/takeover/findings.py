# SPDX-License-Identifier: Apache-2.0
"""What a look at a database finds."""

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How bad a finding is; the worst one is the exit code of `treeclaim db check`."""

    OK = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        level: How bad it is.
        subject: What was looked at: a table or a setting.
        text: What was found.
        remedy: What to do; empty where there is nothing to do.
    """

    level: Level
    subject: str
    text: str
    remedy: str = ""


def passed(subject: str, text: str) -> Finding:
    """Return a finding about which nothing need be done."""
    return Finding(Level.OK, subject, text)


def warned(subject: str, text: str, remedy: str) -> Finding:
    """Return a finding that does not stand in the way, but should be known."""
    return Finding(Level.WARNING, subject, text, remedy)


def failed(subject: str, text: str, remedy: str) -> Finding:
    """Return a finding that stands in the way."""
    return Finding(Level.ERROR, subject, text, remedy)
