# SPDX-License-Identifier: Apache-2.0
r"""The declaration of arguments, and the base class of every command.

A command declares its arguments as a table in the form of a help: argument, two spaces, help.

| argument | meaning |
| --- | --- |
| `FILE`, `HOST...` | required, any number |
| `--on-use` | a flag |
| `--note TEXT` | an option with a value |
| `--limit N = 20` | an option with a default |
| `--effect no_new\|leave` | an option with choices |
| `--in-tree NAME...` | an option that may be repeated |
| `--kind a\|b+` | an option with one or more of some choices |
| `-f,--format json\|value` | an option with a short name |

The name of a value determines its type (`_TYPES`). `NAME:VALUE` names the attribute of the parsed options. Consecutive
arguments that begin with `|` exclude each other; exactly one of those that begin with `!` is required.
"""

import argparse
import inspect
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from treeclaim.cli.output import CommandError, warn
from treeclaim.model.names import did_you_mean, one_line

_LARGEST_NUMBER = 10**9 - 1
"""Larger numbers on a command line are typos."""

_LAST_PORT = 65_535

_MOST_HOURS = 24 * 36_500
"""A hundred years: longer than any feed reaches back, and no overflow of a date."""

_COLUMNS = re.compile(r"\s{2,}")

_ARGUMENT = re.compile(r"(-\S+)?(?:\s*(?:(\w+):)?(\S+?)(\.\.\.|\+)?)?(?:\s=\s(.+))?")
"""An argument in a table: option, attribute, value, count and default."""


class Parser(argparse.ArgumentParser):
    """A parser without abbreviated options: a typo never becomes another option."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message in one line; exit with status 2."""
        super().error(one_line(message))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Reject unknown arguments; a parent parser would print its own usage for them."""
        options, unknown_words = super().parse_known_args(args, namespace)
        if hasattr(options, "parameters") and not any(
            word.startswith("-") for word in unknown_words
        ):
            # argparse returns query words after an option as unknown.
            options.parameters += unknown_words
            unknown_words = []
        if unknown_words:
            advice = did_you_mean(unknown_words[0], self._option_string_actions)
            self.error(f"not understood: {' '.join(unknown_words)}{advice}")
        return options, unknown_words


def _parse_whole_number(text: str, *, minimum: int, maximum: int = _LARGEST_NUMBER) -> int:
    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(maximum))
    number = int(text) if is_short else -1
    if not minimum <= number <= maximum:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a whole number from {minimum} to {maximum}"
        )
    return number


def _parse_octal(text: str) -> int:
    try:
        return int(text, 8)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not an octal number") from None


_positive = partial(_parse_whole_number, minimum=1)
_natural = partial(_parse_whole_number, minimum=0)

_TYPES: Mapping[str, Callable[[str], Any]] = {
    "N": _positive,
    "MIB": _positive,
    "LEVELS": _natural,
    "PERCENT": _natural,
    "SECONDS": _natural,
    "HOURS": partial(_parse_whole_number, minimum=0, maximum=_MOST_HOURS),
    "OCTAL": _parse_octal,
    "PORT": partial(_parse_whole_number, minimum=0, maximum=_LAST_PORT),
    "FILE": Path,
    "PATH": os.path.abspath,
}
"""Types of values by their names in the help; the default is str."""

CONFIG_OPTIONS = """
    --config-file config_files:PATH...  a configuration file; later ones take precedence
    --config-dir config_dirs:PATH...    a directory with more configuration files
"""


def declare_arguments(parser: argparse.ArgumentParser, table: str) -> None:
    """Add the arguments of a table to a parser; the module docstring describes the table."""
    rows = filter(None, map(str.strip, table.splitlines()))
    for mark, marked_rows in itertools.groupby(rows, lambda row: row[0] if row[0] in "|!" else ""):
        alternatives = list(marked_rows)
        is_required = mark == "!"
        group: Any = parser
        if mark and len(alternatives) > 1:
            group = parser.add_mutually_exclusive_group(required=is_required)
        for row in alternatives:
            argument, text = _COLUMNS.split(row.removeprefix(mark).strip(), maxsplit=1)
            name, settings = _read_argument(argument)
            settings["help"] = text.replace("%", "%%") + settings.get("help", "")
            if is_required and group is parser:
                settings["required"] = True
            group.add_argument(*name.split(","), **settings)


def _read_argument(argument: str) -> tuple[str, dict[str, Any]]:
    match = _ARGUMENT.fullmatch(argument)
    assert match is not None, argument  # noqa: S101 - tests read all tables
    option, destination, value, count, default = match.groups()
    if value is None:
        return option, {"action": "store_true"}
    choices = value.split("|") if value.islower() else None
    convert = _TYPES.get(value, str)
    settings: dict[str, Any] = {"type": convert, "choices": choices}
    if choices is None:
        settings["metavar"] = value
    if default is not None:
        settings |= {"default": convert(default), "help": " (default: %(default)s)"}
    if option is None:
        settings |= {"nargs": "*", "default": []} if count else {}
        return destination or value.lower(), settings
    if destination:
        settings["dest"] = destination
    if count == "+":
        settings |= {"action": "extend", "default": [], "nargs": "+"}
        settings |= {"metavar": option[2:].upper(), "help": f": {', '.join(choices or ())}"}
    elif count:
        settings |= {"action": "append", "default": [], "help": "; may be repeated"}
    return option, settings


class DeclaredCommand:
    """A command with a help from its docstring and arguments.

    Attributes:
        arguments: Table of the arguments.
        example: Arguments of the example in the help.
        failure_status: Exit status of a failure; 2 where 1 is a negative answer.
        program: Prefix of failure messages.
    """

    arguments: ClassVar[str] = ""
    example: ClassVar[str] = ""
    failure_status: ClassVar[int] = 1
    program = "treeclaim"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command."""
        declare_arguments(parser, self.arguments)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command."""
        parser = Parser(
            prog=prog_name,
            description=inspect.cleandoc(type(self).__doc__ or ""),
            epilog=f"Example: {prog_name} {self.example}".rstrip(),
        )
        self.add_arguments(parser)
        return parser

    def execute(self, options: argparse.Namespace) -> int | None:
        """Run the command; return the exit status, None for 0."""
        raise NotImplementedError

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command, and print its failure; return the exit status.

        Where 1 is a negative answer, unexpected errors are failures, too.
        """
        try:
            return self.execute(parsed_args) or 0
        except CommandError as error:
            failure = error
        except (BrokenPipeError, ModuleNotFoundError):
            raise
        except Exception as error:
            if self.failure_status == 1:
                raise
            failure = CommandError(f"unexpected {type(error).__name__}: {error}")
        first_line, *further_lines = failure.lines
        warn(f"{self.program}: {first_line}", *further_lines)
        return self.failure_status if failure.exit_code == 1 else failure.exit_code
