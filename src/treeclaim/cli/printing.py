# SPDX-License-Identifier: Apache-2.0
"""Prints tables, trees, bars and their texts; each text is one line.

Rich takes a text's own line breaks, and passes what controls a terminal on to it. So no other module
makes its `Text` or `Console` (`make lint` holds that), and a plain string is made safe here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from treeclaim.model.texts import one_line

_BAR = 30
"""Characters of a bar."""

Line = Text
"""A line or several lines, made by `line` and `lines`."""

Part = str | tuple[str, str]
"""A part of a line: its text, or text and style."""


class Printer(Console):
    """Prints what can be read."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Make a text of a string, for whatever is printed: rich asks here for all of them."""
        return super().render_str(one_line(text), **how)


def line(*parts: Part, style: str = "") -> Line:
    """Return a line of parts, each of which may have a style of its own."""
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((one_line(text), shade) for text, shade in pairs), style=style)


def lines(parts: Iterable[str | Line]) -> Line:
    """Return lines below each other."""
    return Text("\n").join(line(each) if isinstance(each, str) else each for each in parts)


def amounts_in_words(resources: Mapping[str, int]) -> str:
    """Return amounts, such as `2 VCPU, 512 MEMORY_MB`."""
    return ", ".join(f"{amount} {name}" for name, amount in resources.items())


def bar(part: float, whole: float, *, held: float = 0, width: int = _BAR) -> str:
    """Return a bar that is as full as a part is of a whole; it shows from the first unit.

    What holds have of the part is drawn apart, behind the rest.
    """
    filled = 0 if not part else max(1, min(width, round(width * part / max(whole, 1))))
    kept = 0 if not held else max(1, min(filled, round(filled * held / part)))
    return "█" * (filled - kept) + "▒" * kept + "░" * (width - filled)


def bars(title: str, counts: Sequence[tuple[str, int]]) -> Table:
    """Return a picture of how many there are of each name, none of which has none."""
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    most = max((count for _, count in counts), default=1)
    for name, count in counts:
        table.add_row(name, "█" * max(1, round(_BAR * count / most)), str(count))
    return table
