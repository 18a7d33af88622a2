# SPDX-License-Identifier: Apache-2.0
"""How long clients may take, and how many may be served at a time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections for `treeclaim serve`, in each worker.

    Attributes:
        header_seconds: From a connection's opening, or a request's first byte, until all headers
            are there.
        body_seconds: From the headers until the whole body is there.
        answer_seconds: In each such time a client has to take a piece of its answer.
        keep_alive_seconds: Between the end of an answer and the next request.
        connections: Open at a time.
        waiting: Requests that wait for a thread.
        body_bytes: Longest body that is read.
        watchers: Connections that watch; see `most_watchers`.
    """

    header_seconds: float
    body_seconds: float
    answer_seconds: float
    keep_alive_seconds: float
    connections: int
    waiting: int
    body_bytes: int
    watchers: int

    @property
    def most_watchers(self) -> int:
        """Return how many connections may watch: a quarter of all is left to other requests."""
        return min(self.watchers, self.connections * 3 // 4)
