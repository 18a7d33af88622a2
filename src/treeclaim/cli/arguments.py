# SPDX-License-Identifier: Apache-2.0
"""Command lines: the parser of every command, the types of its options, and commands without a cloud."""

import argparse
import inspect
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar, NoReturn

from treeclaim.cli.output import CommandError, warn
from treeclaim.model.texts import one_line

_MOST_DIGITS = 9
"""Digits of a number on a command line; a longer one is a mistake."""

_LAST_PORT = 65_535


class Parser(argparse.ArgumentParser):
    """Accepts options by their whole names only, so that a typo never becomes another option."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Print the usage and a message in one line; exit with status 2."""
        super().error(one_line(message))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown arguments here: a parser above would print its own usage for them."""
        options, unknown = super().parse_known_args(args, namespace)
        if hasattr(options, "parameters") and not any(word.startswith("-") for word in unknown):
            # argparse leaves the words of a query that follow an option.
            options.parameters += unknown
            unknown = []
        if unknown:
            near = get_close_matches(unknown[0], self._option_string_actions, 1)
            advice = f"; did you mean {near[0]}?" if near else ""
            self.error(f"not understood: {' '.join(unknown)}{advice}")
        return options, unknown


def positive(text: str) -> int:
    """Read a whole number of at least 1, for argparse.

    Raises:
        argparse.ArgumentTypeError: for any other text.
    """
    return _whole(text, 1)


def natural(text: str) -> int:
    """Read a whole number of at least 0, for argparse.

    Raises:
        argparse.ArgumentTypeError: for any other text.
    """
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a whole number of at least {least}"
        )
    if len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} has more than {_MOST_DIGITS} digits")
    if int(text) < least:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is less than {least}")
    return int(text)


def port(text: str) -> int:
    """Read a TCP port, for argparse; 0 is any free port.

    Raises:
        argparse.ArgumentTypeError: for any other text.
    """
    if natural(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a port; the last is {_LAST_PORT}")
    return int(text)


def add_number(parser: argparse.ArgumentParser, name: str, default: int, text: str) -> None:
    """Add an option that takes a whole number of at least 1.

    Args:
        parser: The parser of the command.
        name: Name of the option, without dashes.
        default: The number without the option.
        text: Help of the option, without the default.
    """
    parser.add_argument(
        f"--{name}", type=positive, default=default, help=f"{text} (default: %(default)s)"
    )


def add_repeatable(
    parser: argparse.ArgumentParser, name: str, metavar: str, text: str, **options: Any
) -> None:
    """Add an option that may be given several times; its value is a list, empty without it.

    Args:
        parser: The parser of the command.
        name: Name of the option, without dashes.
        metavar: Name of a value in the help.
        text: Help of the option.
        options: Further arguments for argparse, such as `dest`.
    """
    parser.add_argument(
        f"--{name}",
        action="append",
        default=[],
        metavar=metavar,
        help=f"{text}; may be repeated",
        **options,
    )


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name configuration files."""
    add_repeatable(
        parser, "config-file", "PATH", "a configuration file; later ones take precedence"
    )
    add_repeatable(parser, "config-dir", "DIR", "a directory with more configuration files")


def make_parser(
    prog: str,
    description: str | None,
    example: str,
    add_arguments: Callable[[argparse.ArgumentParser], None],
) -> Parser:
    """Return the parser of a command.

    Args:
        prog: The words of the command with those of the program.
        description: The docstring of the command.
        example: Arguments of an example.
        add_arguments: Adds the arguments of the command.
    """
    parser = Parser(
        prog=prog,
        description=inspect.cleandoc(description or ""),
        epilog=f"Example: {prog} {example}".rstrip(),
    )
    add_arguments(parser)
    return parser


class LocalCommand:
    """A command of `treeclaim` that needs no endpoint of a cloud.

    Attributes:
        example: Arguments of an example, for the help.
        failure_status: Exit status of a failure; 2 where 1 is an answer.
    """

    example: ClassVar[str] = ""
    failure_status: ClassVar[int] = 1

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command."""

    def act(self, options: argparse.Namespace) -> int | None:
        """Run the command; return an exit status other than 0."""
        raise NotImplementedError

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command."""
        return make_parser(prog_name, type(self).__doc__, self.example, self.add_arguments)

    def run(self, options: argparse.Namespace) -> int:
        """Run the command; return its exit status."""
        return report_failures(lambda: self.act(options) or 0, failure_status=self.failure_status)


def report_failures(
    run: Callable[[], int], *, failure_status: int, program: str = "treeclaim"
) -> int:
    """Run a command; return its exit status.

    Args:
        run: Runs the command.
        failure_status: Exit status of a failure that names none; 2 where 1 is an answer. Then each
            unexpected error has it, too.
        program: Begins the message.
    """
    try:
        return run()
    except CommandError as error:
        failure = error
    except (LookupError, OSError, TypeError, ValueError) as error:
        if failure_status == 1:
            raise
        failure = CommandError(f"unexpected {type(error).__name__}: {error}")
    first, *further_lines = failure.lines
    warn(f"{program}: {first}", *further_lines)
    return failure_status if failure.exit_code == 1 else failure.exit_code
