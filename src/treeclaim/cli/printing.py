# SPDX-License-Identifier: Apache-2.0
"""What prints tables and trees, and the texts in them: whatever comes in is one line each.

Rich takes a text's own line breaks, and passes what controls a terminal on to it. So no other module
makes its `Text` or `Console` (`make lint` holds that), and a plain string is made safe here.
"""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text

from treeclaim.model.texts import one_line

Line = Text
"""One or several lines, as `line` and `lines` make them."""

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
