# SPDX-License-Identifier: Apache-2.0
"""How busy each part of a deployment is, by measured coefficients and a few linear rules."""

from dataclasses import dataclass

from bench.scale.coefficients import Coefficients

_MOST_BUSY = 0.7
"""Of a part: above, what waits for it waits long."""

_SEARCHES_FOR_A_CLAIM = 2.0
"""In a cloud where some searches find nothing, or lose against others."""

_LARGEST_RATE = 1e7


@dataclass(frozen=True, slots=True)
class Deployment:
    """Machines and what they hold.

    Attributes:
        machines: That run the service.
        workers: On each machine, as many as it has cores.
        providers: In the cloud.
        database_cores: Of the database's machine.
        commits: That the database's disk takes in a second.
    """

    machines: int
    workers: int
    providers: int
    database_cores: int = 16
    commits: float = 2_000.0


@dataclass(frozen=True, slots=True)
class Load:
    """How busy each part is; 1 is all it can do.

    Attributes:
        workers: CPU of the workers.
        database: CPU of the database.
        disk: Commits.
    """

    workers: float
    database: float
    disk: float

    @property
    def busiest(self) -> tuple[str, float]:
        """Return the name of the busiest part, and how busy it is."""
        parts = {
            "workers": self.workers,
            "the database's CPU": self.database,
            "the database's commits": self.disk,
        }
        name = max(parts, key=parts.__getitem__)
        return name, parts[name]


def load(costs: Coefficients, deployment: Deployment, searches: float) -> Load:
    """Return how busy all parts are with so many searches a second, and half as many claims.

    Each read asks the database once what is new. Each worker reads each group of claims once, if it
    is asked that often; so what the database tells its readers grows with claims times workers.
    """
    claims = searches / _SEARCHES_FOR_A_CLAIM
    workers = deployment.machines * deployment.workers
    group = _group(costs, claims / workers)
    commits = claims / group
    followed = min(searches / workers, commits)
    quiet, busy = costs.search, costs.search_after_claim
    extra_api = max(busy.api_ms - quiet.api_ms, 0.0)
    extra_database = max(busy.database_ms - quiet.database_ms, 0.0)
    claim_api = _between(costs.claim.api_ms, costs.grouped_claim.api_ms, group, costs.group_size)
    claim_database = _between(
        costs.claim.database_ms, costs.grouped_claim.database_ms, group, costs.group_size
    )
    of_workers = (searches * quiet.api_ms + claims * claim_api) / workers + followed * extra_api
    reads = searches * quiet.database_ms + workers * followed * extra_database
    writes = claims * claim_database
    cores = deployment.database_cores * 1000.0
    return Load(
        workers=of_workers / 1000.0,
        database=(writes + reads) / cores,
        disk=commits / deployment.commits,
    )


def _group(costs: Coefficients, claims: float) -> float:
    """Return how many claims share a transaction in a worker that gets so many a second.

    Those that come during one transaction are the next one, so a worker writes no more groups in a
    second than transactions fit into it.
    """
    one = costs.claim
    seconds = (one.api_ms + one.database_ms + costs.commit_ms) / 1000.0
    return min(max(claims * seconds, 1.0), 64.0)


def _between(alone: float, grouped: float, group: float, measured: float) -> float:
    """Return the cost of a claim in a group, given those alone and in groups as measured."""
    if measured <= 1.0:
        return grouped
    fixed = max((alone - grouped) / (1.0 - 1.0 / measured), 0.0)
    return max(alone - fixed, 0.0) + fixed / group


def capacity(costs: Coefficients, deployment: Deployment) -> tuple[float, str]:
    """Return the searches a second at which the first part is busy enough, and which part."""
    low, high = 0.0, _LARGEST_RATE
    for _ in range(60):
        middle = (low + high) / 2
        if load(costs, deployment, middle).busiest[1] > _MOST_BUSY:
            high = middle
        else:
            low = middle
    return low, load(costs, deployment, high).busiest[0]


def memory(costs: Coefficients, deployment: Deployment) -> float:
    """Return the bytes that the service needs on each machine, whose workers share the inventory."""
    copied = (deployment.workers - 1) * costs.copied_bytes
    workers = deployment.workers * costs.worker_bytes
    return costs.service_bytes + workers + deployment.providers * (costs.provider_bytes + copied)


def load_seconds(costs: Coefficients, deployment: Deployment) -> float:
    """Return how long a worker takes to be ready, if it has the database for itself."""
    return costs.load_seconds * deployment.providers / 1e6
