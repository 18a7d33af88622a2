# SPDX-License-Identifier: Apache-2.0
"""Values of columns: words in a table, data in JSON and the other formats for programs."""

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

from cliff.columns import FormattableColumn
from rich.console import Console, RenderableType

from treeclaim.cli.cloud.looking.tables import amounts_in_words

_WIDTH = 120
"""Columns of what is drawn into a cell."""


class Told(FormattableColumn[Any]):
    """A value with its words."""

    def __init__(self, value: Any, in_words: Callable[[Any], str]) -> None:
        """Take a value of JSON, and what puts it into words."""
        super().__init__(value)
        self._in_words = in_words

    def human_readable(self) -> str:
        """Return the words."""
        return self._in_words(self._value)


def amounts(value: Mapping[str, int]) -> Told:
    """Return amounts by resource class."""
    return Told(dict(value), amounts_in_words)


def lines(value: Sequence[str]) -> Told:
    """Return texts, each on a line of its own."""
    return Told(list(value), "\n".join)


def drawn(value: Any, picture: RenderableType) -> Told:
    """Return a value that a table shows as a picture of it."""
    return Told(value, lambda _: _text(picture))


def _text(picture: RenderableType) -> str:
    out = StringIO()
    Console(file=out, width=_WIDTH, color_system=None, highlight=False).print(picture)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
