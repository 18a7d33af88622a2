# SPDX-License-Identifier: Apache-2.0
"""What one search and one claim cost, as measured on one machine."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cost:
    """What one operation costs.

    Attributes:
        api_ms: CPU time of the service.
        database_ms: CPU time of the database's processes; with SQLite it is in `api_ms`.
        client_ms: CPU time of the client that measured, which shares the machine.
        round_trips: To the database.
        database_bytes: To and from the database.
        answer_bytes: Of the body that the client gets.
    """

    api_ms: float
    database_ms: float
    client_ms: float
    round_trips: float
    database_bytes: float
    answer_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Rate:
    """What sixteen clients got done that search and claim without a pause.

    Attributes:
        workers: Of the service, all on this machine.
        pairs_per_second: Searches that were followed by a claim.
    """

    workers: int
    pairs_per_second: float


@dataclass(frozen=True, slots=True)
class Coefficients:
    """All that the model needs, for one database.

    Attributes:
        database: Which.
        search: A search when nobody writes.
        search_after_claim: A search right after a claim of another client.
        claim: A claim, when one client claims.
        grouped_claim: A claim, when sixteen clients claim at once.
        commit_ms: What one client's claim waits for, beside all CPU time: the disk.
        provider_bytes: Memory of a machine for each provider, however many workers share it.
        copied_bytes: Memory of each worker beyond the first for each provider: what it does not share.
        worker_bytes: Memory of each worker without providers.
        service_bytes: Memory of the other processes of the service on a machine, and of shared code.
        load_seconds: Until a worker with a million providers is ready.
        rates: What was done with some numbers of workers.
        cores: Of the machine.
    """

    database: str
    search: Cost
    search_after_claim: Cost
    claim: Cost
    grouped_claim: Cost
    commit_ms: float
    provider_bytes: float
    copied_bytes: float
    worker_bytes: float
    service_bytes: float
    load_seconds: float
    rates: tuple[Rate, ...]
    cores: int

    @property
    def group_size(self) -> float:
        """Return how many claims shared a transaction when sixteen clients claimed.

        A group takes as many round trips as a claim alone. SQLite has none; there CPU time tells.
        """
        if self.grouped_claim.round_trips:
            return max(self.claim.round_trips / self.grouped_claim.round_trips, 1.0)
        return max(self.claim.api_ms / self.grouped_claim.api_ms, 1.0)

    def as_json(self) -> dict[str, Any]:
        """Return the coefficients as they are written to a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Coefficients":
        """Read what `as_json` returned."""
        costs = ("search", "search_after_claim", "claim", "grouped_claim")
        return cls(
            **{
                **document,
                **{name: Cost(**document[name]) for name in costs},
                "rates": tuple(Rate(**rate) for rate in document["rates"]),
            }
        )
