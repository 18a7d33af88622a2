# SPDX-License-Identifier: Apache-2.0
"""Man pages from the parsers: `python -m tools.manual FOLDER` (`make man`)."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treeclaim import __version__
from treeclaim.cli.main import parser_of_all


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


def write_pages(folder: Path) -> list[Path]:
    """Write a page for the program and one for each command; return their files."""
    commands = list(described(parser_of_all()))
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for command in commands:
        path = folder / f"{'-'.join(('treeclaim', *command.words))}.1"
        path.write_text(_page(command, commands), encoding="utf-8")
        written.append(path)
    return written


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


def _page(command: Described, commands: Sequence[Described]) -> str:
    name = "-".join(("treeclaim", *command.words))
    text = command.help or command.parser.description or ""
    usage = " ".join(command.parser.format_usage().removeprefix("usage:").split())
    lines = [
        f'.TH "{name.upper()}" "1" "" "treeclaim {__version__}" "Treeclaim"',
        ".SH NAME",
        f"{_safe(name)} \\- {_safe(text)}",
        ".SH SYNOPSIS",
        _safe(usage),
        ".SH DESCRIPTION",
        _safe(command.parser.description or text),
    ]
    actions = [
        action
        for action in command.parser._actions  # noqa: SLF001 - argparse has no other way to ask
        if action.help is not argparse.SUPPRESS
        and not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    ]
    if actions:
        lines.append(".SH OPTIONS")
        for action in actions:
            lines += [".TP", f"\\fB{_safe(_title(action))}\\fR", _safe(_help(action))]
    below = [other for other in commands if other.words[:-1] == command.words and other.words]
    if below:
        lines.append(".SH COMMANDS")
        for other in below:
            page = "-".join(("treeclaim", *other.words))
            lines += [".TP", f"\\fB{_safe(page)}\\fR(1)", _safe(other.help)]
    return "\n".join(lines) + "\n"


def _title(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    shown = value if isinstance(value, str) else " ".join(value or ())
    names = ", ".join(action.option_strings)
    return f"{names} {shown}".strip() if action.nargs != 0 else names


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _safe(text: str) -> str:
    """Return text that roff does not take for its own."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line for line in lines)


if __name__ == "__main__":
    for page in write_pages(Path(sys.argv[1])):
        print(page)
