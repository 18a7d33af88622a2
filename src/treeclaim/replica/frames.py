# SPDX-License-Identifier: Apache-2.0
"""The protocol of a child's pipe: frames of a kind, a length and bytes.

Pickled are errors, and what was read for the child, between two processes that are one program.
"""

import os
import pickle
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from treeclaim.model.errors import TreeclaimError

HEADER = struct.Struct("!BQ")
"""Kind and length of what follows."""

COUNT = struct.Struct("!Q")
"""The number of candidates of an answer."""


class MessageKind(IntEnum):
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
    FAILED = 6
    """An unexpected error; the traceback."""


def send(pipe: int, kind: MessageKind, content: "bytes | memoryview[Any]") -> None:
    """Write a frame; waits while the pipe is full."""
    for part in (HEADER.pack(kind, len(content)), content):
        remaining_bytes = memoryview(part).cast("B")
        while len(remaining_bytes):
            remaining_bytes = remaining_bytes[os.write(pipe, remaining_bytes) :]


def pickled(content: object) -> bytes:
    """Pickle an error, or a part of what was read for a child."""
    return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)


def unpickled_error(content: bytes) -> TreeclaimError:
    """Return an error that a child has pickled."""
    error: TreeclaimError = pickle.loads(content)  # noqa: S301 - written by our own child
    return error


def read_parts(pipe: int) -> Iterator[Any]:
    """Yield the parts that the parent sends, until it has sent all."""
    with open(pipe, "rb", closefd=False) as stream:
        while header := stream.read(HEADER.size):
            _, length = HEADER.unpack(header)
            yield pickle.loads(stream.read(length))  # noqa: S301 - written by our own parent
