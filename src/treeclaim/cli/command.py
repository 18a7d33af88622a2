# SPDX-License-Identifier: Apache-2.0
"""Base classes of cloud commands, for `treeclaim` and for the `openstack` plugin.

Without an application a command belongs to `treeclaim`, and has options for the endpoint. In `openstack` it uses
that program's login.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from cliff.columns import FormattableColumn
from cliff.command import Command
from cliff.display import DisplayCommandBase
from cliff.lister import Lister
from cliff.show import ShowOne
from rich.console import RenderableType

from treeclaim.cli.arguments import DeclaredCommand, declare_arguments
from treeclaim.cli.connection import ENDPOINT_OPTIONS, open_client
from treeclaim.cli.nova import Nova
from treeclaim.cli.output import CommandError, Streams, print_json, print_lines, warn
from treeclaim.cli.printing import format_amounts, make_printer
from treeclaim.cli.query_arguments import build_query
from treeclaim.client import CandidateQuery, Client, ClientError
from treeclaim.model.names import one_line

JSON, TABLE, SHELL = "json", "table", "shell"
_ESCAPING = (JSON, "yaml")

_EXECUTED = re.compile(r"[\\$`]")
"""Characters that a shell expands within double quotes. The formatter escapes the quotes."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command.

    Attributes:
        columns: Names of columns, or of fields.
        rows: Rows of a list, or the values of the fields of one item.
        document: Printed by `-f json` without `-c`; None to print the rows.
        picture: Printed by `-f table` without `-c`; None to print the rows.
        notes: Lines below the table, or instead of a table without rows. They go to standard error for
            other formats, except JSON, which has none.
        status: Exit status.
    """

    columns: Sequence[str]
    rows: Sequence[Any]
    document: Any = None
    picture: RenderableType | None = None
    notes: Sequence[str] = ()
    status: int = 0


class CloudCommand(DeclaredCommand, Command):
    """A command that talks to a service."""

    def __init__(self, app: Any = None, app_args: Any = None, cmd_name: str | None = None) -> None:
        super().__init__(cast("Any", app or Streams()), app_args, cmd_name)
        self._is_plugin = app is not None
        if self._is_plugin:
            self.program = "openstack"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        if not self._is_plugin:
            declare_arguments(parser, ENDPOINT_OPTIONS)
        return parser

    def execute(self, options: argparse.Namespace) -> int:
        return Command.run(self, options)

    @contextmanager
    def connect(self, options: argparse.Namespace) -> Iterator[Client]:
        """Open a client of the service."""
        if not self._is_plugin:
            with open_client(options) as client:
                yield client
            return
        try:
            yield self.app.client_manager.treeclaim  # type: ignore[attr-defined]
        except ClientError as error:
            raise CommandError(str(error)) from error

    def connect_nova(self, options: argparse.Namespace, option: str) -> Nova:
        """Return the compute API of the cloud, for an option that needs it."""
        if not self._is_plugin:
            return Nova.from_options(options, option)
        manager = self.app.client_manager  # type: ignore[attr-defined]
        return Nova(manager.session, manager.sdk_connection.config)

    def build_query(self, options: argparse.Namespace) -> CandidateQuery:
        """Return the query that the options describe."""
        return build_query(options, partial(self.connect_nova, options, "--server-flavor"))


class CloudAction(CloudCommand):
    """A command that prints no table."""

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        with self.connect(parsed_args) as client:
            return self.act(client, parsed_args) or 0

    def act(self, client: Client, options: argparse.Namespace) -> int | None:
        """Run the command; return the exit status, None for 0."""
        raise NotImplementedError


class _ResultCommand(DisplayCommandBase[Any], CloudCommand):
    """A command that prints a result."""

    _result: Result

    def __init__(self, app: Any = None, app_args: Any = None, cmd_name: str | None = None) -> None:
        super().__init__(app, app_args, cmd_name)

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        with self.connect(parsed_args) as client:
            self._result = self.make_result(client, parsed_args)
        return self._result.columns, self._result.rows

    def run(self, parsed_args: argparse.Namespace) -> int:
        return CloudCommand.run(self, parsed_args)

    def execute(self, options: argparse.Namespace) -> int:
        DisplayCommandBase.run(self, options)
        return self._result.status

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any
    ) -> int:
        _require_columns(parsed_args.columns, column_names)
        if not _print_whole(self._result, parsed_args):
            cell = partial(make_safe_cell, parsed_args.formatter)
            is_list = isinstance(self, Lister)
            cells = [list(map(cell, row)) if is_list else cell(row) for row in data]
            super().produce_output(parsed_args, column_names, cells)  # type: ignore[safe-super]
        _print_notes(self._result, parsed_args.formatter)
        return 0


class CloudLister(_ResultCommand, Lister):
    """A command that lists items: a row for each."""


class CloudShow(_ResultCommand, ShowOne):
    """A command that shows one item: a line for each field."""


def _require_columns(chosen_names: Sequence[str], columns: Sequence[str]) -> None:
    column_names = {column.lower().replace(" ", "_") for column in columns}
    for name in chosen_names:
        if name.lower().strip().replace(" ", "_") not in column_names:
            raise CommandError(f"there is no column {name!r}; there are {', '.join(columns)}")


def _print_whole(result: Result, options: argparse.Namespace) -> bool:
    """Print the document or the picture if the options request it; return False if the rows remain."""
    if options.columns:
        return False
    if options.formatter == JSON and result.document is not None:
        print_json(result.document)
        return True
    if options.formatter != TABLE:
        return False
    if result.picture is not None:
        make_printer().print(result.picture)
    return result.picture is not None or (not result.rows and bool(result.notes))


def _print_notes(result: Result, formatter: str) -> None:
    if formatter == TABLE:
        print_lines(*result.notes)
    elif formatter != JSON:
        warn(*result.notes)


class Cell(FormattableColumn[Any]):
    """A JSON value; `format_lines` returns the lines of its text."""

    def __init__(self, value: Any, format_lines: Callable[[Any], Iterable[str]]) -> None:
        super().__init__(value)
        self._format_lines = format_lines

    @classmethod
    def of_amounts(cls, value: Mapping[str, int]) -> "Cell":
        """Return a cell of amounts by resource class."""
        return cls(dict(value), lambda by_class: [format_amounts(by_class)])

    @classmethod
    def of_lines(cls, value: Iterable[str]) -> "Cell":
        """Return a cell of texts, each on its own line."""
        return cls(list(value), iter)

    def human_readable(self) -> str:
        """Return the lines."""
        return "\n".join(map(one_line, self._format_lines(self._value)))

    def __lt__(self, other: Any) -> bool:
        """Order cells by their lines, for `--sort-column`."""
        return self.human_readable() < str(getattr(other, "human_readable", str)())


def make_safe_cell(formatter: str, value: Any) -> Any:
    """Return a value of a row that is harmless on a terminal, and in a shell that evaluates it."""
    if formatter in _ESCAPING:
        return value
    if formatter == TABLE:
        if value is None or isinstance(value, str):
            return Cell(value or "", lambda text: [text])
        return value
    plain_value = value.machine_readable() if isinstance(value, FormattableColumn) else value
    if formatter == SHELL and not isinstance(plain_value, int):
        return _EXECUTED.sub(r"\\\g<0>", one_line(str(plain_value)))
    return one_line(plain_value) if isinstance(plain_value, str) else value
