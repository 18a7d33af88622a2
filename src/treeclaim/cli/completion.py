# SPDX-License-Identifier: Apache-2.0
"""`treeclaim completion`: a script that lets a shell complete commands, options and their choices."""

import argparse
from collections.abc import Iterator
from typing import Any

from treeclaim.cli.output import say_script

_SHELLS = ("bash", "fish", "powershell", "tcsh", "zsh")


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "completion",
        description="Print a completion script. For bash: source <(treeclaim completion bash). "
        "For zsh: the same, after compinit. For fish: treeclaim completion fish | source.",
    )
    command.add_argument("shell", choices=_SHELLS, help="which shell")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    # All parsers, and what reads them, which only this command needs.
    import shtab  # noqa: PLC0415

    from treeclaim.cli.main import parser  # noqa: PLC0415

    program = parser()
    for action in _actions(program):
        if "file" in (action.dest, str(action.metavar).lower()):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    say_script(shtab.complete(program, options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of all commands below it."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                yield from _actions(below)
