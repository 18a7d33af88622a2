# SPDX-License-Identifier: Apache-2.0
"""Caches valid answers, and records questions that took long."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from treeclaim.forest.bounds.cache import ByteCache

_MOST_BYTES = 32_000_000
"""Bytes of all cached answers with overhead: two of the longest unstreamed answers, or thousands of usual ones."""

_MOST_SLOW = 4_096
"""Most recorded slow questions; 200 bytes each, less than a megabyte."""

_SLOW_SECONDS = 60.0
"""Seconds of a record: claims and a lighter load may make the question short again."""

_OFTEN = 2
"""Long attempts in a row after which a question counts as slow."""

_LARGE_PIECE = 64 * 1024
"""Least bytes of a piece that is cached without a copy; an answer has at most a few hundred."""

Piece = bytes | memoryview
"""A part of an answer."""


@dataclass(frozen=True)
class WholeAnswer:
    """An answer that is valid until the Forest changes.

    Attributes:
        pieces: JSON in pieces. Answers may share pieces, such as the summaries of unchanged trees.
        candidates: Number of candidates.
        modified_at: Last change of its objects, in seconds since the epoch; None without that header.
    """

    pieces: Sequence[Piece]
    candidates: int = 0
    modified_at: float | None = None

    @classmethod
    def of(
        cls, pieces: Iterable[Piece], candidates: int = 0, modified_at: float | None = None
    ) -> "WholeAnswer":
        """Return the answer with small pieces joined; large ones are not copied."""
        return cls(_join_small(pieces), candidates, modified_at)

    @cached_property
    def nbytes(self) -> int:
        """Return the bytes of the answer."""
        return sum(map(len, self.pieces))


def _join_small(pieces: Iterable[Piece]) -> Sequence[Piece]:
    joined_pieces: list[Piece] = []
    small_pieces: list[Piece] = []
    for piece in pieces:
        if len(piece) < _LARGE_PIECE:
            small_pieces.append(piece)
            continue
        joined_pieces += [b"".join(small_pieces), piece] if small_pieces else [piece]
        small_pieces.clear()
    return [*joined_pieces, b"".join(small_pieces)] if small_pieces else joined_pieces


class AnswerCache:
    """Caches answers by question, since schedulers repeat few questions; evicts the least recently used ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._answers = ByteCache(_MOST_BYTES, makes_read_only=False)

    def find(self, version: int, key: bytes | None) -> WholeAnswer | None:
        """Return the cached answer for a version of the Forest, or None."""
        if key is None or not self._is_present(version):
            return None
        answer = self._answers.find(key)
        return answer if isinstance(answer, WholeAnswer) else None

    def keep(self, version: int, key: bytes | None, answer: WholeAnswer) -> None:
        """Cache an answer for a version of the Forest; ignore it if a later version is known."""
        if key is not None and answer.nbytes <= _MOST_BYTES // 2 and self._is_present(version):
            self._answers.keep(key, answer)

    def _is_present(self, version: int) -> bool:
        """Return whether a version is the latest; drop the answers of earlier versions."""
        with self._lock:
            if version > self._version:
                self._version = version
                self._answers.clear()
            return version == self._version


class SlowQuestions:
    """Records the questions that took long, which then skip the attempt in the turn; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slow: dict[bytes, tuple[int, float]] = {}
        """Number of long attempts in a row, and expiry on the monotonic clock."""

    def note(self, key: bytes | None, times: int = _OFTEN) -> None:
        """Record a long question; by default at once as slow."""
        if key is None:
            return
        now = time.monotonic()
        with self._lock:
            earlier_times, expiry = self._slow.pop(key, (0, now))
            if expiry > now:
                times += earlier_times
            self._slow[key] = (times, now + _SLOW_SECONDS)
            if len(self._slow) > _MOST_SLOW:
                del self._slow[next(iter(self._slow))]

    def note_once(self, key: bytes | None) -> None:
        """Record one long attempt, which may be an exception: a first search after many claims fills caches."""
        self.note(key, 1)

    def forget(self, key: bytes | None) -> None:
        """Delete the record of a question that was short."""
        if key in self._slow:
            with self._lock:
                self._slow.pop(key, None)

    def has(self, key: bytes | None) -> bool:
        """Return whether a question is slow."""
        times, expiry = self._slow.get(key, (0, 0.0)) if key is not None else (0, 0.0)
        return times >= _OFTEN and expiry > time.monotonic()
