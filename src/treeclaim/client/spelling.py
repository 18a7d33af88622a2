# SPDX-License-Identifier: Apache-2.0
"""What to say about an unknown word."""

import difflib
from collections.abc import Iterable


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


_FAR = 3
"""Words that differ by this many letters are not misspellings of each other."""

_LONGEST = 64
"""Letters of a word that is compared; no known one is as long."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a word misspells, if there is one.

    Two letters may differ, be missing or be extra; fewer in words of less than eight. The pages
    have the same in `ui/static/model/spelling.js`.
    """
    near = [
        (distance, other)
        for other in known
        if (distance := _distance(word.lower()[:_LONGEST], other.lower()))
        <= min(_FAR - 1, len(other) // 4)
    ]
    return min(near, key=lambda pair: pair[0])[1] if near else None


def _distance(first: str, second: str) -> int:
    """Return how many letters must be changed, added or taken away to make one word the other."""
    if abs(len(first) - len(second)) >= _FAR:
        return _FAR
    above = list(range(len(second) + 1))
    for row, letter in enumerate(first, 1):
        line = [row]
        for column, other in enumerate(second, 1):
            changed = above[column - 1] + (letter != other)
            line.append(min(changed, above[column] + 1, line[-1] + 1))
        above = line
    return above[-1]
