# SPDX-License-Identifier: Apache-2.0
"""What commands have in common: how they print, and how they fail."""

import argparse
import codecs
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PORT = 8778
"""The conventional port of the Placement API."""

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has ended, as shells have it."""

_MOST_DIGITS = 9
"""Of a number that somebody types; what is longer is none that anybody means."""

_LAST_PORT = 65_535

_WIDEST = 1_000_000
"""Columns of a pipe or a file: lines are not cut there."""

_PLAIN = {
    "█": "#",
    "░": ".",
    "→": "->",
    "…": "...",
    "“": '"',
    "”": '"',
}
"""What a terminal that cannot show a character gets in its place; others become `?`."""


class CommandError(Exception):
    """A command cannot go on; the message is for the person at the terminal."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def reason_of(error: Exception) -> str:
    """Return why a file cannot be used, for a message that names it already."""
    return getattr(error, "strerror", None) or str(error)


def positive(text: str) -> int:
    """Read an option that is a whole number of at least 1, for argparse.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    return _whole(text, 1)


def natural(text: str) -> int:
    """Read an option that is a whole number of at least 0, for argparse.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number of at least {least}")
    if len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} has more than {_MOST_DIGITS} digits")
    if int(text) < least:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is less than {least}")
    return int(text)


def port(text: str) -> int:
    """Read a TCP port, for argparse; 0 is any that is free.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    if natural(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no port; the last is {_LAST_PORT}")
    return int(text)


def printer() -> "Console":
    """Return what prints tables and trees: as wide as the terminal, uncut and plain elsewhere."""
    # Four megabytes, which the first process of a service does without.
    from treeclaim.cli.printing import Printer  # noqa: PLC0415

    is_seen = sys.stdout.isatty()
    return Printer(
        width=None if is_seen else _WIDEST,
        color_system="auto" if is_seen else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not is_seen,
    )


def make_output_plain_where_needed() -> None:
    """Let no character that a terminal does not know end a command."""
    codecs.register_error("treeclaim", _replaced)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="treeclaim")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in wrong), error.end
