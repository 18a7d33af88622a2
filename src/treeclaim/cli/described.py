# SPDX-License-Identifier: Apache-2.0
"""All commands with their options, as the parsers have them: for completion and man pages."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Described:
    """A command.

    Attributes:
        words: How it is called, without the program's name.
        help: What it does, in a line.
        parser: Its arguments.
        commands: Names of commands below it.
    """

    words: tuple[str, ...]
    help: str
    parser: argparse.ArgumentParser
    commands: tuple[str, ...]

    def options(self) -> Iterator[argparse.Action]:
        """Yield its options, without arguments that have a place."""
        for action in self.parser._actions:  # noqa: SLF001 - argparse has no other way to ask
            if action.option_strings and action.help is not argparse.SUPPRESS:
                yield action


def described(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = (), text: str = ""
) -> Iterator[Described]:
    """Yield a command and all below it."""
    parts = [
        action
        for action in parser._actions  # noqa: SLF001 - see above
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    ]
    below = {name: choice for part in parts for name, choice in part.choices.items()}
    helps = {
        pseudo.dest: pseudo.help or ""
        for part in parts
        for pseudo in part._choices_actions  # noqa: SLF001
    }
    yield Described(words, text, parser, tuple(below))
    for name, choice in below.items():
        yield from described(choice, (*words, name), helps.get(name, ""))
