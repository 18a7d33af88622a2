# SPDX-License-Identifier: Apache-2.0
"""The entry point of the command line, where every failure of a command ends as a line."""

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
from treeclaim.cli.registry import GROUPS, all_commands, run_command, split_leading_options

_BROKEN_PIPE = 141
"""Exit status when the reader of the output is gone, as in shells: 128 and SIGPIPE."""

_USAGE = 2
"""Exit status of a command line that cannot be parsed, as argparse has it."""

_DEBUG = "TREECLAIM_DEBUG"
"""Environment variable that makes an unexpected failure print its traceback."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status."""
    replace_unencodable_characters()
    try:
        try:
            return _run(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            # Flush here, where a failure is handled.
            print_lines(flush=True)
    except BrokenPipeError:
        discard_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - this is where every failure ends
        if os.environ.get(_DEBUG):
            warn(*traceback.format_exc().splitlines())
        warn(f"treeclaim: {_describe(error)}")
        return 1


def _run(command_line: Sequence[str]) -> int:
    words, options = split_leading_options(command_line)
    status = run_command(words, options)
    if status is not None:
        return status
    overview = _overview()
    if not words:
        warn(*overview.format_help().splitlines())
        return _USAGE
    # There is no such command, or only an option: the parser ends with the help or an error.
    overview.parse_args(words)
    return _USAGE


def _describe(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("treeclaim"):
        return "this command needs the service: pip install 'treeclaim[service]'"
    # The error of a database driver has the reason; the layers above repeat it with their statements.
    cause = getattr(error, "orig", None) or error
    if cause is not error or isinstance(error, OSError):
        # Drivers write paragraphs.
        return " ".join(str(cause).split())
    lines = str(error).splitlines() or [""]
    return (
        f"unexpected {type(error).__name__}: {lines[0]} (set {_DEBUG}=1 to see where, and please "
        "report it)"
    )


def _overview() -> argparse.ArgumentParser:
    """Return a parser of the names of all commands, for the help of the program and of its groups."""
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
    for name, entry in all_commands().items():
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
