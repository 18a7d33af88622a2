# SPDX-License-Identifier: Apache-2.0
"""Output and failures of all commands.

The only `print` of the command line is in this module, and no other module writes to its streams; `make lint`
checks that. Foreign names and errors therefore reach a terminal only as one harmless line
each.
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
"""Exit code of a command that Ctrl-C has ended, as shells have it."""

_LONGEST = 2_000
"""Characters of a line on standard error: a server's words may be an attacker's."""


class CommandError(Exception):
    """A command cannot go on; the message is for the person at the terminal.

    Each function of the command line may raise it.

    Attributes:
        lines: The lines of the message. A line break within one is part of what it quotes.
        exit_code: The command's exit code.
    """

    def __init__(self, *lines: str, exit_code: int = 1) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.exit_code = exit_code


FAILED = 2
"""Exit status of a failure, where 1 is a negative answer."""


def count_text(count: int, noun: str) -> str:
    """Return how many there are, in words: `1 move`, `2 moves`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


class Streams:
    """Passes the current standard output to cliff's formatters."""

    @property
    def stdout(self) -> IO[str]:
        """The standard output."""
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
    """Print a text without escapes; it must have no foreign parts."""
    _print(text, sys.stdout, end)


def warn(*lines: str) -> None:
    """Print lines beside the result, on standard error; long ones are cut."""
    for line in lines:
        _print(one_line(line, longest=_LONGEST), sys.stderr)


def is_confirmed(question: str) -> bool:
    """Ask a question that must be answered with yes; without an input the answer is no."""
    # Only the result is printed to standard output, as it may be JSON.
    _print(one_line(question), sys.stderr, " ")
    sys.stderr.flush()
    try:
        return input().strip().lower() in {"y", "yes"}
    except (EOFError, RuntimeError):
        return False


def _print(text: str, to: IO[str], end: str = "\n") -> None:
    print(text, file=to, end=end)


def reason_of(error: Exception) -> str:
    """Return why a file cannot be used, for a message that names it already."""
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def failures_at(
    place: Path | str,
    kinds: tuple[type[Exception], ...] = (OSError, ValueError, RecursionError),
) -> Iterator[None]:
    """Make failures to read something those of a command, which name its place."""
    try:
        yield
    except kinds as error:
        raise CommandError(f"{place}: {reason_of(error)}") from error


def text_in(file: Path) -> str:
    """Read a file that a command names; raises CommandError."""
    with failures_at(file):
        return file.read_text(encoding="utf-8")


def object_of(file: Path, text: str) -> dict[str, Any]:
    """Return the JSON object that is the text of a file; raises CommandError."""
    with failures_at(file):
        document = json.loads(text)
    if not isinstance(document, dict):
        raise CommandError(f"{file}: it is not an object")
    return document


def discard_output() -> None:
    """Discard the interpreter's own last flush, which would fail with a message."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def replace_unencodable_characters() -> None:
    """Print `?` for a character that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
