# SPDX-License-Identifier: Apache-2.0
"""The entry point of the command line, and the one place where a command's failure ends.

Whatever happens, a person sees a line: input and files never cause a traceback.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from treeclaim import __version__
from treeclaim.cli.output import (
    INTERRUPTED,
    CommandError,
    ReaderGone,
    complain,
    discard_output,
    make_output_plain_where_needed,
    noticing_readers,
    say,
)
from treeclaim.cli.registry import COMMANDS, add_commands, add_lines
from treeclaim.model.texts import one_line

_BROKEN_PIPE = 141
"""Exit code when the reader of the output is gone, as in shells: 128 and SIGPIPE."""

_USAGE = 2
"""Exit code of a command that cannot be understood, as argparse has it."""

_DEBUG = "TREECLAIM_DEBUG"
"""Environment variable that asks for the traceback of an unexpected failure."""


class _Parser(argparse.ArgumentParser):
    """Knows options by their whole names only: a typo must not become another option."""

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **named})  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Say what cannot be understood, and end."""
        super().error(one_line(message))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse what is unknown here: the parser above would show its own usage for that."""
        options, unknown = super().parse_known_args(args, namespace)
        if hasattr(options, "parameters") and not any(word.startswith("-") for word in unknown):
            # argparse leaves the words of a query that stand after an option.
            options.parameters += unknown
            unknown = []
        if unknown:
            near = get_close_matches(unknown[0], self._option_string_actions, 1)
            advice = f"; did you mean {near[0]}?" if near else ""
            self.error(f"not understood: {' '.join(unknown)}{advice}")
        return options, unknown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    make_output_plain_where_needed()
    try:
        with noticing_readers():
            try:
                return _run(list(sys.argv[1:] if arguments is None else arguments))
            finally:
                # Flush here, where a failure is handled.
                say(flush=True)
    except ReaderGone:
        discard_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except CommandError as error:
        first, *others = error.lines
        complain(f"treeclaim: {first}", *others)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - this is where every failure ends
        if os.environ.get(_DEBUG):
            complain(*traceback.format_exc().splitlines())
        complain(f"treeclaim: {_words(error)}")
        return 1


def _run(given: Sequence[str]) -> int:
    if not given:
        complain(*_overview().format_help().splitlines())
        return _USAGE
    program = parser(given[0]) if given[0] in COMMANDS else _overview()
    options = program.parse_args(given)
    return int(options.run(options))


def _words(error: Exception) -> str:
    # A database's driver says what is wrong; the layers above repeat it with their statements.
    cause = getattr(error, "orig", None) or error
    if cause is not error or isinstance(error, OSError):
        # Drivers write paragraphs.
        return " ".join(str(cause).split())
    lines = str(error).splitlines() or [""]
    return (
        f"unexpected {type(error).__name__}: {lines[0]} (set {_DEBUG}=1 to see where, and please "
        "report it)"
    )


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of a command and of those in its module; of all commands without one."""
    program, subparsers = _program()
    add_commands(subparsers, COMMANDS if command not in COMMANDS else [command])
    return program


def _overview() -> argparse.ArgumentParser:
    """Return a parser that knows the commands and none of their options."""
    program, subparsers = _program()
    add_lines(subparsers)
    return program


def _program() -> tuple[argparse.ArgumentParser, Any]:
    program = _Parser(
        prog="treeclaim",
        description="Trees of resource providers: candidates in milliseconds, claims that never "
        "overbook.",
        epilog="The help of a command: treeclaim COMMAND --help",
    )
    program.add_argument("--version", action="version", version=f"treeclaim {__version__}")
    return program, program.add_subparsers(title="commands", metavar="COMMAND", required=True)
