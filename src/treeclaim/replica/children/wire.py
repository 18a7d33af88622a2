# SPDX-License-Identifier: Apache-2.0
"""The protocol of a child's pipe: frames of a kind, a length and bytes.

Pickled are errors, and what holds have, between two processes that are one program.
"""

import os
import pickle
import struct
from enum import IntEnum
from typing import Any

from treeclaim.model.errors import TreeclaimError

HEADER = struct.Struct("!BQ")
"""Kind and length of what follows."""

COUNT = struct.Struct("!Q")
"""How many candidates an answer has."""

_LENGTH = struct.Struct("!Q")


class Kind(IntEnum):
    """Kinds of frames."""

    WHOLE = 1
    """The whole body; an END follows."""
    PIECE = 2
    """A piece of a long body; more pieces and an END follow."""
    END = 3
    """The answer is complete; the number of candidates."""
    REFUSAL = 4
    """An error of the model, instead of an answer."""
    TOO_LARGE = 5
    """The memory was not enough."""


def send(pipe: int, kind: Kind, content: "bytes | memoryview[Any]") -> None:
    """Write a frame; waits while the pipe is full."""
    for part in (HEADER.pack(kind, len(content)), content):
        rest = memoryview(part).cast("B")
        while len(rest):
            rest = rest[os.write(pipe, rest) :]


def told(content: bytes) -> bytes:
    """Return what a parent tells its child, with its length before it."""
    return _LENGTH.pack(len(content)) + content


def heard(pipe: int) -> bytes:
    """Read what the parent tells; waits until that is whole."""
    length = _LENGTH.unpack(_whole(pipe, _LENGTH.size))[0]
    return _whole(pipe, length)


def _whole(pipe: int, length: int) -> bytes:
    parts: list[bytes] = []
    while length:
        parts.append(os.read(pipe, length))
        if not parts[-1]:
            raise EOFError
        length -= len(parts[-1])
    return b"".join(parts)


def packed(error: TreeclaimError) -> bytes:
    """Write an error; its constructor may take other arguments than it stores."""
    return pickle.dumps((type(error), error.args, error.__dict__))


def unpacked(content: bytes) -> TreeclaimError:
    """Read an error."""
    kind, arguments, attributes = pickle.loads(content)  # noqa: S301 - written by our own child
    error: TreeclaimError = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(attributes)
    return error
