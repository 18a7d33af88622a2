# SPDX-License-Identifier: Apache-2.0
"""Texts from other people, made readable and harmless.

Names and errors come from anybody who may write to a cloud. Where one is shown, in a terminal, a log
or an error, it must not move the cursor, set the title or the clipboard, begin a line of its own or
change the direction of writing.
"""

import difflib
from collections.abc import Iterable
from unicodedata import category

LONGEST_QUOTED = 300
"""Characters of a value that an error quotes: a name of the greatest length (255) fits."""

_PRIVATE = "Co"
"""Category of characters whose meaning is a matter of the font: they have a shape."""

_CUT = "\N{HORIZONTAL ELLIPSIS}"


def one_line(text: str, *, keep: str = "", longest: int | None = None) -> str:
    r"""Return a text in one line, with an escape such as `\x1b` for each character without a shape.

    These are, by Unicode's categories: control characters (also C1) and DEL, ends of lines and of
    paragraphs, what changes the direction of writing or cannot be seen, halves of surrogate pairs,
    and spaces that are not the usual one.

    Args:
        text: From anybody.
        keep: Characters that stay.
        longest: Most characters of what is returned; None for all.
    """
    if longest is not None:
        # No more is escaped than can be needed.
        text = text[: longest + 1]
    # Nearly all texts are printable, and this is found out sooner than it is said of each character.
    if not text.isprintable():
        text = "".join(
            char if char.isprintable() or char in keep else _escape(char) for char in text
        )
    if longest is not None and len(text) > longest:
        return text[: longest - 1] + _CUT
    return text


def quote_value(value: object) -> str:
    """Return a value as an error may repeat it: cut, and in one line.

    A request must not decide how much is written, nor where a line or a header ends.
    """
    return one_line(str(value), longest=LONGEST_QUOTED)


def _escape(char: str) -> str:
    if category(char) == _PRIVATE:
        return char
    return char.encode("unicode_escape").decode("ascii")


def unknown_word(word: str, known: Iterable[str], *, resembling: str = "") -> str:
    """Say that a word is unknown, which one it resembles, and which there are.

    Args:
        word: What was written.
        known: What could be written.
        resembling: The part of the word that is compared first; all of it if empty.
    """
    known = list(dict.fromkeys(known))
    near = (resembling and difflib.get_close_matches(resembling, known, 1)) or (
        difflib.get_close_matches(word, known, 1)
    )
    advice = f"; did you mean {near[0]!r}? Known" if near else "; known"
    return f"unknown {word!r}{advice} are {', '.join(known)}"
