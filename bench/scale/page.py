# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of `docs/scale.md` from what was measured."""

from collections.abc import Callable, Iterator, Sequence

from bench.scale.coefficients import Coefficients, Cost
from bench.scale.model import Deployment, capacity, load_seconds, memory

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mariadb": "MariaDB"}
_GIGABYTE = 1e9
_MACHINES = (1, 10, 100)
_WORKERS_EACH = 8
_PROVIDERS = 10_000_000


def page(text: str, measured: Sequence[Coefficients]) -> str:
    """Return the page with new tables between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables(measured)}\n{END}{after}"


def tables(measured: Sequence[Coefficients]) -> str:
    """Return all tables as Markdown."""
    if not measured:
        return "Nothing has been measured yet.\n"
    parts = (_costs, _memory, _rates, _capacities)
    return "\n".join(part(measured) for part in parts)


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _costs(measured: Sequence[Coefficients]) -> str:
    kinds: dict[str, Callable[[Coefficients], Cost]] = {
        "a search": lambda costs: costs.search,
        "a search right after a claim": lambda costs: costs.search_after_claim,
        "a claim, one client": lambda costs: costs.claim,
        "a claim, sixteen clients": lambda costs: costs.grouped_claim,
    }

    def rows() -> Iterator[Sequence[str]]:
        for costs in measured:
            for name, cost_of in kinds.items():
                cost = cost_of(costs)
                yield (
                    f"{name}, {_NAMES[costs.database]}",
                    f"{cost.api_ms:.2f}",
                    f"{cost.database_ms:.2f}",
                    f"{cost.round_trips:.1f}",
                    f"{cost.database_bytes / 1000:.1f}",
                    f"{cost.answer_bytes / 1000:.0f}" if cost.answer_bytes else "",
                )

    head = (
        "",
        "service, ms CPU",
        "database, ms CPU",
        "round trips",
        "kB to and from it",
        "kB answer",
    )
    return "### What one operation costs\n\n" + _table(head, rows())


def _memory(measured: Sequence[Coefficients]) -> str:
    def rows() -> Iterator[Sequence[str]]:
        for costs in measured:
            yield (
                _NAMES[costs.database],
                f"{costs.provider_bytes / 1000:.2f}",
                f"{costs.copied_bytes / 1000:.3f}",
                f"{costs.worker_bytes / 1e6:.0f}",
                f"{costs.service_bytes / 1e6:.0f}",
                f"{costs.load_seconds:.1f}",
                f"{costs.commit_ms:.1f}",
            )

    head = (
        "",
        "kB for each provider",
        "kB more for each further worker",
        "MB for each worker",
        "MB beside the workers",
        "s to load a million",
        "ms that a commit waits",
    )
    return "### What a machine holds\n\n" + _table(head, rows())


def _rates(measured: Sequence[Coefficients]) -> str:
    def rows() -> Iterator[Sequence[str]]:
        for costs in measured:
            for rate in costs.rates:
                workers = f"{_count(rate.workers, 'worker')}, {_NAMES[costs.database]}"
                yield (workers, f"{rate.pairs_per_second:.0f}")

    title = f"### Searches with a claim, sixteen clients, {measured[0].cores} cores shared by all"
    return f"{title}\n\n" + _table(("", "a second"), rows())


def _capacities(measured: Sequence[Coefficients]) -> str:
    def rows() -> Iterator[Sequence[str]]:
        for costs in measured:
            if costs.database == "sqlite":
                continue
            for machines in _MACHINES:
                deployment = Deployment(machines, _WORKERS_EACH, _PROVIDERS)
                rate, part = capacity(costs, deployment)
                yield (
                    f"{_count(machines, 'machine')}, {_NAMES[costs.database]}",
                    f"{rate:,.0f}",
                    f"{rate / 2:,.0f}",
                    part,
                    f"{memory(costs, deployment) / _GIGABYTE:.0f}",
                    f"{load_seconds(costs, deployment):.0f}",
                )

    head = (
        "",
        "searches a second",
        "claims a second",
        "what is busy first",
        "GB on each machine",
        "s until a worker is ready",
    )
    return (
        f"### Where it ends: {_WORKERS_EACH} workers on each machine, "
        f"{_PROVIDERS / 1e6:.0f} million providers\n\n" + _table(head, rows())
    )
