# SPDX-License-Identifier: Apache-2.0
"""Output and failures of all commands.

Only this module prints; `make lint` checks that. Foreign names and errors therefore reach a terminal only as
one harmless line each.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from treeclaim.model.names import one_line

PORT = 8778
"""The conventional port of the Placement API."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""

_LONGEST = 2_000
"""Characters of a line on standard error: a server's message may be an attacker's."""


class CommandError(Exception):
    """A command failed. Every function of the command line may raise it.

    Attributes:
        lines: Lines of the message; line breaks within a line are escaped.
        exit_code: Exit status of the command.
    """

    def __init__(self, *lines: str, exit_code: int = 1) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.exit_code = exit_code


FAILED = 2
"""Exit status of a failure, where 1 is a negative answer."""


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun: `1 move`, `2 moves`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


class Streams:
    """An application for cliff's formatters, which need only its standard output."""

    @property
    def stdout(self) -> IO[str]:
        """Return the current standard output."""
        return sys.stdout


def print_lines(*lines: str, flush: bool = False) -> None:
    """Print lines; line breaks within them are escaped."""
    for line in lines:
        _print(one_line(line), sys.stdout)
    if flush:
        sys.stdout.flush()


def print_json(document: Any, *, indent: int | None = 2) -> None:
    """Print JSON in ASCII, without control characters."""
    _print(json.dumps(document, indent=indent).replace("\x7f", "\\u007f"), sys.stdout)


def print_trusted(text: str, end: str = "\n") -> None:
    """Print a text unescaped; it must have no foreign parts."""
    _print(text, sys.stdout, end)


def warn(*lines: str) -> None:
    """Print lines on standard error; cut long ones."""
    for line in lines:
        _print(one_line(line, longest=_LONGEST), sys.stderr)


def confirm(question: str) -> bool:
    """Prompt for a yes on standard error; return False for other answers, or without input."""
    _print(one_line(question), sys.stderr, " ")
    sys.stderr.flush()
    try:
        return input().strip().lower() in {"y", "yes"}
    except (EOFError, RuntimeError):
        return False


def _print(text: str, to: IO[str], end: str = "\n") -> None:
    print(text, file=to, end=end)


def describe_failure(error: Exception) -> str:
    """Return the message of an error without the name of the file."""
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def convert_failures(
    place: Path | str,
    kinds: tuple[type[Exception], ...] = (OSError, ValueError, RecursionError),
) -> Iterator[None]:
    """Convert exceptions to CommandError with a place in front of the message."""
    try:
        yield
    except kinds as error:
        raise CommandError(f"{place}: {describe_failure(error)}") from error


def read_text(file: Path) -> str:
    """Read a text file; raise CommandError if that fails."""
    with convert_failures(file):
        return file.read_text(encoding="utf-8")


def parse_object(file: Path, text: str) -> dict[str, Any]:
    """Parse the text of a file as a JSON object; raise CommandError if it is none."""
    with convert_failures(file):
        document = json.loads(text)
    if not isinstance(document, dict):
        raise CommandError(f"{file}: it is not an object")
    return document


def discard_output() -> None:
    """Redirect standard output to nothing, so that the flush at interpreter exit cannot fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def replace_unencodable_characters() -> None:
    """Print `?` for characters that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
