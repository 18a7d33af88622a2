# SPDX-License-Identifier: Apache-2.0
"""Names, identifiers and texts from clients: valid spellings, normal forms, and safe output.

Names and errors come from anybody who may write to a cloud. Where one is shown, in a terminal, a log
or an error, it must not move the cursor, set the title or the clipboard, begin a line of its own or
change the direction of writing.
"""

import difflib
import re
import uuid
from collections.abc import Iterable
from unicodedata import category

CUSTOM_PREFIX = "CUSTOM_"
"""Begins the name of every trait and resource class that is not a standard one."""

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"
"""A provider with this trait lends its inventory to the trees in its aggregates."""

UNKNOWN_TYPE = "unknown"
"""Stands for the type of consumers that never got one (contract page 80, section 2.2)."""

FIRST_CUSTOM_CLASS_ID = 10_000
"""Resource classes with a smaller id are standard ones (contract page 60, section 1)."""

MAXIMUM_NAME_LENGTH = 255

NAMESPACE = uuid.UUID("6f1d6c1e-3c5e-5c55-9a3b-6e8f1f0a7c11")
"""Names in a file become uuids in this namespace, the same ones each time."""

_CUSTOM_NAME = re.compile(r"CUSTOM_[A-Z0-9_]+")
_DIGITS = re.compile(r"[0-9a-fA-F]{32}")
_NORMALISED_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def is_custom_name(name: str) -> bool:
    """Return whether a name may be given to a custom trait or resource class."""
    return len(name) <= MAXIMUM_NAME_LENGTH and _CUSTOM_NAME.fullmatch(name) is not None


def normalised_uuid(text: str) -> str | None:
    """Return the lower-case dashed form of any spelling of a uuid, or None if it is none.

    Accepts what `uuid.UUID` accepts: dashes optional, braces, `urn:uuid:`, upper case
    (contract page 00, section 12).
    """
    # Lists of a thousand are usual in queries, and nearly all are as they should be.
    if _NORMALISED_UUID.fullmatch(text):
        return text
    try:
        parsed_uuid = uuid.UUID(text)
    except ValueError:
        return None
    # `uuid.UUID` parses the digits with `int`, which accepts blanks, newlines and underscores.
    digits = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    return str(parsed_uuid) if _DIGITS.fullmatch(digits) else None


def aggregate_uuid(name: str) -> str:
    """Return the uuid of an aggregate, which a file may name in words."""
    # Arguments of a shell need not be UTF-8; no aggregate has such a name.
    text = name.encode(errors="replace").decode()
    return normalised_uuid(name) or str(uuid.uuid5(NAMESPACE, f"aggregate {text}"))


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
    # Nearly all texts are printable, and checking a whole text is faster than checking each character.
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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: a question for the nearest known word; empty without one."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def unknown_word(word: str, known: Iterable[str], *, resembling: str = "") -> str:
    """Return a message that a word is unknown, with the nearest known word, and all known words.

    Args:
        word: The unknown word.
        known: The known words.
        resembling: The part of the word that is compared first; all of it if empty.
    """
    known = list(dict.fromkeys(known))
    near = (resembling and did_you_mean(resembling, known)) or did_you_mean(word, known)
    return f"unknown {word!r}{f'{near} Known' if near else '; known'} are {', '.join(known)}"
