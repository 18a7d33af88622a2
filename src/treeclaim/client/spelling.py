# SPDX-License-Identifier: Apache-2.0
"""What to say of a word that nobody knows."""

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
