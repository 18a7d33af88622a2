# SPDX-License-Identifier: Apache-2.0
"""Files that cannot be replayed, and how they are read."""

from pathlib import Path

from treeclaim.model.texts import one_line

_MOST_BYTES = 512 * 1024 * 1024
"""Bytes of a file: some millions of events."""

_LONGEST = 200
"""Characters that are quoted of a file."""


class ReplayError(Exception):
    """Something cannot be replayed; the message names the file, and the line where there is one."""


def problem(file: Path | str, line: int, text: str) -> ReplayError:
    """Return the error of a line of a file; 0 where it is about the whole."""
    where = f"{file}:{line}" if line else f"{file}"
    return ReplayError(f"{one_line(where, longest=_LONGEST)}: {text}")


def quoted(text: object) -> str:
    """Return a text of a file as a message may repeat it: cut, and in one line."""
    return repr(one_line(str(text), longest=_LONGEST))


def text_of(file: Path) -> str:
    """Read a file.

    Raises:
        ReplayError: if it cannot be read, is no UTF-8, or is too large.
    """
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise problem(file, 0, f"it cannot be read: {reason}") from error
    if len(content) > _MOST_BYTES:
        raise problem(file, 0, f"it is longer than {_MOST_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise problem(file, line, "this is not UTF-8") from error
