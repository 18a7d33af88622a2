# SPDX-License-Identifier: Apache-2.0
"""Entry point of the command line; reports every failure in one line."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from treeclaim import __version__
from treeclaim.cli.arguments import Parser
from treeclaim.cli.output import (
    INTERRUPTED,
    discard_output,
    print_lines,
    replace_unencodable_characters,
    warn,
)
from treeclaim.cli.registry import GROUPS, list_commands, run_command, split_leading_options

_BROKEN_PIPE = 141
"""Exit status after a closed output, as in shells: 128 + SIGPIPE."""

_USAGE = 2
"""Exit status of an invalid command line, as in argparse."""

_DEBUG = "TREECLAIM_DEBUG"
"""Environment variable that enables tracebacks of unexpected failures."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status."""
    replace_unencodable_characters()
    try:
        try:
            return _run(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            # A flush at interpreter exit could not report a failure.
            print_lines(flush=True)
    except BrokenPipeError:
        discard_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - no failure may end in a traceback
        if os.environ.get(_DEBUG):
            warn(*traceback.format_exc().splitlines())
        warn(f"treeclaim: {_describe(error)}")
        return 1


def _run(command_line: Sequence[str]) -> int:
    words, options = split_leading_options(command_line)
    status = run_command(words, options)
    if status is not None:
        return status
    overview = _make_overview_parser()
    if not words:
        warn(*overview.format_help().splitlines())
        return _USAGE
    # Without a known command the parser exits: it prints the help or an error.
    overview.parse_args(words)
    return _USAGE


def _describe(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("treeclaim"):
        return "this command needs the service: pip install 'treeclaim[service]'"
    # The database driver's error has the reason; SQLAlchemy's adds the statement.
    cause = getattr(error, "orig", None) or error
    if cause is not error or isinstance(error, OSError):
        # Messages of drivers have several lines.
        return " ".join(str(cause).split())
    lines = str(error).splitlines() or [""]
    return (
        f"unexpected {type(error).__name__}: {lines[0]} (set {_DEBUG}=1 to see where, and please "
        "report it)"
    )


def _make_overview_parser() -> argparse.ArgumentParser:
    """Return a parser of the command names, for the help of the program and of its groups."""
    program = Parser(
        prog="treeclaim",
        description="Trees of resource providers: candidates in milliseconds, claims that never "
        "overbook.",
        epilog="The help of a command: treeclaim COMMAND --help. --endpoint, --os-cloud and --token may "
        "precede the command.",
    )
    program.add_argument("--version", action="version", version=f"treeclaim {__version__}")
    commands = program.add_subparsers(title="commands", metavar="COMMAND", required=True)
    groups: dict[str, Any] = {"": commands}
    for name, entry in list_commands().items():
        group, _, verb = name.rpartition(" ")
        if group not in groups:
            text = GROUPS[group]
            parser = commands.add_parser(
                group, help=text, description=f"{text[0].upper()}{text[1:]}."
            )
            groups[group] = parser.add_subparsers(
                title="commands", metavar="COMMAND", required=True
            )
        groups[group].add_parser(verb, help=entry.help)
    return program
