# SPDX-License-Identifier: Apache-2.0
"""Caches about questions: answers that still hold, and the questions that take long."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

_MOST_BYTES = 32_000_000
"""Bytes of all answers that are kept, with all that holds them: two of the longest that are made
in one piece, or thousands of the usual ones."""

_OVERHEAD = 500
"""Bytes of an answer's key and of the objects that hold it: many small answers count too."""

_MOST_LONG = 4_096
"""Questions that are known to take long: of 200 bytes each, less than a megabyte."""

_LONG_SECONDS = 60.0
"""For how long that is believed: claims and a lighter load may have made it short again."""


_LARGE_PIECE = 64 * 1024
"""Bytes of a piece that is kept as it is; there are a few hundred of them at most."""

Piece = bytes | memoryview
"""A part of an answer."""


@dataclass(frozen=True)
class KeptAnswer:
    """An answer that holds until something changes.

    Attributes:
        pieces: JSON, when joined. Answers may have pieces in common: the summaries of a thousand
            trees are the same until one of them changes.
        candidates: How many are in it.
        modified_at: When what it shows changed last, in seconds since the epoch; None where clients
            are not told.
    """

    pieces: Sequence[Piece]
    candidates: int = 0
    modified_at: float | None = None

    @classmethod
    def of(
        cls, pieces: Iterable[Piece], candidates: int = 0, modified_at: float | None = None
    ) -> "KeptAnswer":
        """Make it of pieces of any length, without a copy of those that are large."""
        return cls(_few(pieces), candidates, modified_at)

    @cached_property
    def size(self) -> int:
        """Return the bytes of the answer."""
        return sum(map(len, self.pieces))


def _few(pieces: Iterable[Piece]) -> Sequence[Piece]:
    few: list[Piece] = []
    small: list[Piece] = []
    for piece in pieces:
        if len(piece) < _LARGE_PIECE:
            small.append(piece)
            continue
        few += [b"".join(small), piece] if small else [piece]
        small.clear()
    return [*few, b"".join(small)] if small else few


class KeptAnswers:
    """Answers by the keys of their questions; the least recently used are dropped first.

    Schedulers ask the same few questions again and again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._answers: OrderedDict[bytes, KeptAnswer] = OrderedDict()
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Return the bytes that are taken."""
        return self._bytes

    def find(self, version: int, key: bytes | None) -> KeptAnswer | None:
        """Return the answer that holds at a version of the Forest, if known."""
        if key is None:
            return None
        with self._lock:
            self._forget_before(version)
            answer = self._answers.get(key)
            if answer is not None and self._version == version:
                self._answers.move_to_end(key)
                return answer
            return None

    def keep(self, version: int, key: bytes | None, answer: KeptAnswer) -> None:
        """Keep an answer computed at a version of the Forest, if it still holds."""
        size = answer.size + _OVERHEAD
        if key is None or size > _MOST_BYTES // 2:
            return
        with self._lock:
            self._forget_before(version)
            if self._version != version or key in self._answers:
                return
            self._answers[key] = answer
            self._bytes += size
            while self._bytes > _MOST_BYTES:
                _, oldest = self._answers.popitem(last=False)
                self._bytes -= oldest.size + _OVERHEAD

    def _forget_before(self, version: int) -> None:
        if version > self._version:
            self._version = version
            self._answers.clear()
            self._bytes = 0


class LongQuestions:
    """Remembers for a while which questions took long, to answer them in a child at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def note(self, key: bytes | None) -> None:
        """Remember that a question took long."""
        if key is None:
            return
        with self._lock:
            self._until[key] = time.monotonic() + _LONG_SECONDS
            self._until.move_to_end(key)
            while len(self._until) > _MOST_LONG:
                self._until.popitem(last=False)

    def knows(self, key: bytes | None) -> bool:
        """Return whether a question took long recently."""
        if key is None:
            return False
        with self._lock:
            until = self._until.get(key)
            if until is not None and until < time.monotonic():
                del self._until[key]
                return False
            return until is not None

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._until.clear()
