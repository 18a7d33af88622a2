# SPDX-License-Identifier: Apache-2.0
"""Names, identifiers and texts from clients: valid spellings, normal forms, and safe output.

Any client with write access can choose names. A name in a terminal, log or error must not control the terminal, break
the line or change the direction of writing.
"""

import difflib
import re
import uuid
from collections.abc import Iterable
from unicodedata import category

CUSTOM_PREFIX = "CUSTOM_"
"""Prefix of the names of all traits and resource classes that are not standard."""

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"
"""Trait of providers that share their inventories with the trees in their aggregates."""

UNKNOWN_TYPE = "unknown"
"""Type shown for consumers without a type (contract page 80, section 2.2)."""

FIRST_CUSTOM_CLASS_ID = 10_000
"""Lowest id of a custom resource class (contract page 60, section 1)."""

MAXIMUM_NAME_LENGTH = 255

NAMESPACE = uuid.UUID("6f1d6c1e-3c5e-5c55-9a3b-6e8f1f0a7c11")
"""Namespace of the uuids that are computed from names in files."""

_CUSTOM_NAME = re.compile(r"CUSTOM_[A-Z0-9_]+")
_DIGITS = re.compile(r"[0-9a-fA-F]{32}")
_NORMALISED_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def is_custom_name(name: str) -> bool:
    """Return whether a name is valid for a custom trait or resource class."""
    return len(name) <= MAXIMUM_NAME_LENGTH and _CUSTOM_NAME.fullmatch(name) is not None


def normalised_uuid(text: str) -> str | None:
    """Return the lower-case dashed form of a uuid; None if the text is not a uuid.

    Dashes are optional; braces, `urn:uuid:` and upper case are accepted (contract page 00, section 12).
    """
    # Queries often contain a thousand uuids, and nearly all are in this form.
    if _NORMALISED_UUID.fullmatch(text):
        return text
    try:
        parsed_uuid = uuid.UUID(text)
    except ValueError:
        return None
    # `uuid.UUID` parses the digits with `int`, which accepts spaces, newlines and underscores.
    digits = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    return str(parsed_uuid) if _DIGITS.fullmatch(digits) else None


def aggregate_uuid(name: str) -> str:
    """Return the uuid of an aggregate from its uuid or its name in a file."""
    # Shell arguments may be invalid UTF-8; aggregates have no such names.
    text = name.encode(errors="replace").decode()
    return normalised_uuid(name) or str(uuid.uuid5(NAMESPACE, f"aggregate {text}"))


LONGEST_QUOTED = 300
"""Most characters of a value that an error quotes; the longest name (255) fits."""

_PRIVATE = "Co"
"""Unicode category "private use": fonts define visible shapes for these characters."""

_CUT = "\N{HORIZONTAL ELLIPSIS}"


def one_line(text: str, *, keep: str = "", longest: int | None = None) -> str:
    r"""Return a text in one line, with an escape such as `\x1b` for each invisible character.

    Invisible characters are controls, line and paragraph separators, format characters such as changes of direction,
    surrogates, and all spaces except U+0020. Characters in `keep` are not escaped. The result has at most `longest`
    characters, if that is not None.
    """
    if longest is not None:
        # The result shows no later characters, so they are not escaped.
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
    """Return a value from a request for an error: in one line, at most `LONGEST_QUOTED` characters."""
    return one_line(str(value), longest=LONGEST_QUOTED)


def _escape(char: str) -> str:
    if category(char) == _PRIVATE:
        return char
    return char.encode("unicode_escape").decode("ascii")


def did_you_mean(word: str, known_words: Iterable[str]) -> str:
    """Return a suffix such as "; did you mean 'x'?" for the nearest known word; empty if none is near."""
    matches = difflib.get_close_matches(word, list(known_words), 1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def unknown_word(word: str, known_words: Iterable[str], *, resembling_part: str = "") -> str:
    """Return a message that names an unknown word, the nearest known word, and all known words.

    A part `resembling_part` of the word, if any, is compared before the word itself.
    """
    known_words = list(dict.fromkeys(known_words))
    suggestion = (resembling_part and did_you_mean(resembling_part, known_words)) or did_you_mean(
        word, known_words
    )
    return f"unknown {word!r}{f'{suggestion} Known' if suggestion else '; known'} are {', '.join(known_words)}"
