# SPDX-License-Identifier: Apache-2.0
"""`completion`: a script that lets a shell complete commands, options and their choices."""

import argparse
from collections.abc import Iterator

from treeclaim.cli.arguments import DeclaredCommand
from treeclaim.cli.output import say_script


class PrintCompletion(DeclaredCommand):
    """Print a completion script for a shell.

    For bash: source <(treeclaim completion bash). For zsh: the same, after compinit. For fish: treeclaim
    completion fish | source.
    """

    example = "bash"

    arguments = "shell:bash|fish|powershell|tcsh|zsh  the shell"

    def execute(self, options: argparse.Namespace) -> None:
        # All commands, which only this one needs.
        import shtab  # noqa: PLC0415

        from treeclaim.cli.main import parser_of_all  # noqa: PLC0415

        program = parser_of_all()
        for action in _actions(program):
            if action.metavar in ("FILE", "PATH"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        say_script(shtab.complete(program, options.shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of all commands below it."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                yield from _actions(below)
