# SPDX-License-Identifier: Apache-2.0
"""What all commands of the plugin have in common: options, columns as words in a table or as data."""

import argparse
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from cliff.columns import FormattableColumn
from keystoneauth1.adapter import Adapter
from osc_lib import exceptions
from osc_lib.command import command
from rich.console import RenderableType

from treeclaim.cli.cloud.compute import compute_in
from treeclaim.cli.output import FAILED, CommandError
from treeclaim.cli.printing import Printer, amounts_in_words
from treeclaim.client import Client, ClientError
from treeclaim.model.texts import one_line

Rows = tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]
"""Names of columns, and a row for each thing."""

Fields = tuple[tuple[str, ...], tuple[Any, ...]]
"""Names of fields, and a value for each."""

_ESCAPING = ("json", "yaml")

_TABLE = "table"

_SHELL = "shell"

_EXECUTED = re.compile(r"[\\$`]")
"""What a shell looks at within double quotes, besides these, which the formatter escapes."""

_WIDTH = 120
"""Columns of what is drawn into a cell."""


class Talking(command.Command):
    """A command that talks to the cloud with the login of the `openstack` command."""

    add_options: Callable[[argparse.ArgumentParser], None]
    """Adds the options that the `treeclaim` command of the same name has."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser, with the options of the formatters too."""
        parser = super().get_parser(prog_name)
        type(self).add_options(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        Raises:
            osc_lib.exceptions.CommandError: for whatever fails in words.
        """
        try:
            return super().run(parsed_args)
        except (ClientError, CommandError) as error:
            lines = error.lines if isinstance(error, CommandError) else (str(error),)
            raise exceptions.CommandError("\n".join(map(one_line, lines))) from error

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any
    ) -> int:
        """Print what the command returned; names that somebody else wrote are made harmless."""
        cell = functools.partial(cell_for, parsed_args.formatter)
        safe = (
            list(map(cell, data))
            if isinstance(self, command.ShowOne)
            else (list(map(cell, row)) for row in data)
        )
        code: int = super().produce_output(parsed_args, column_names, safe)  # type: ignore[misc]
        return code

    @property
    def client(self) -> Client:
        """The client of the placement endpoint."""
        client: Client = self.app.client_manager.treeclaim  # type: ignore[attr-defined]
        return client

    def compute(self) -> Adapter:
        """Return what talks to the compute API."""
        manager = self.app.client_manager
        return compute_in(manager.sdk_connection.config, manager.session)


class StatusLister(Talking, command.Lister):
    """A command whose exit status tells what came of it, as that of the `treeclaim` command does.

    Attributes:
        status: The exit status, which `take_action` sets.
    """

    status = FAILED

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; whatever fails in words has an exit status of its own."""
        try:
            super().run(parsed_args)
        except exceptions.CommandError as error:
            # The exit status of whatever raises would be that of a bad answer.
            self.app.stderr.write(f"{error}\n")
            return FAILED
        return self.status


class Cell(FormattableColumn[Any]):
    """A value with its words."""

    def __init__(self, value: Any, in_lines: Callable[[Any], Iterable[str]]) -> None:
        """Take a value of JSON, and what puts it into words: lines, which nothing in them ends."""
        super().__init__(value)
        self._in_lines = in_lines

    def human_readable(self) -> str:
        """Return the words."""
        return "\n".join(map(one_line, self._in_lines(self._value)))


def amounts(value: Mapping[str, int]) -> Cell:
    """Return amounts by resource class."""
    return Cell(dict(value), lambda by_class: [amounts_in_words(by_class)])


def lines(value: Sequence[str]) -> Cell:
    """Return texts, each on a line of its own."""
    return Cell(list(value), iter)


def drawn(value: Any, picture: RenderableType) -> Cell:
    """Return a value that a table shows as a picture of it."""
    return Cell(value, lambda _: _lines(picture))


def _lines(picture: RenderableType) -> list[str]:
    out = StringIO()
    Printer(file=out, width=_WIDTH, color_system=None, highlight=False).print(picture)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def cell_for(formatter: str, value: Any) -> Any:
    """Return a cell such that what a formatter makes of it can only be read.

    Args:
        formatter: Its name, as `-f` takes it. Those of JSON and YAML escape by themselves; for a
            shell, nothing in a value may be executed either, as these lines are made for `eval`.
        value: As a command has it.
    """
    if formatter in _ESCAPING:
        return value
    if formatter == _TABLE:
        return Cell(value, lambda text: [text]) if isinstance(value, str) else value
    plain = value.machine_readable() if isinstance(value, FormattableColumn) else value
    if formatter == _SHELL and not isinstance(plain, int):
        return _EXECUTED.sub(r"\\\g<0>", one_line(str(plain)))
    return one_line(plain) if isinstance(plain, str) else value
