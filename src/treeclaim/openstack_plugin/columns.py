# SPDX-License-Identifier: Apache-2.0
"""Values of columns: words in a table, data in JSON and the other formats for programs."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from cliff.columns import FormattableColumn
from rich.console import RenderableType

from treeclaim.cli.cloud.looking.tables import amounts_in_words
from treeclaim.cli.printing import Printer
from treeclaim.model.texts import one_line

_ESCAPING = ("json", "yaml")
_TABLE = "table"
_SHELL = "shell"
_EXECUTED = re.compile(r"[\\$`]")
"""What a shell looks at within double quotes, besides these, which the formatter escapes."""

_WIDTH = 120
"""Columns of what is drawn into a cell."""


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
    return Cell(dict(value), lambda found: [amounts_in_words(found)])


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
