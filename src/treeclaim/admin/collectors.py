# SPDX-License-Identifier: Apache-2.0
"""What is measured in the database at each scrape."""

import logging
from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import Store
from treeclaim.store.reading import totals

_LOG = logging.getLogger(__name__)


class FeedCollector(Collector):
    """How far the change feed has come; workers tell how much of it they have seen."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterable[Metric]:
        """Yield the number of commits in the feed."""
        try:
            position = sum(self._store.positions().values())
        except StoreUnavailableError as error:
            _LOG.warning("No metrics of the change feed: %s", error.for_operators)
            return
        yield GaugeMetricFamily(
            "treeclaim_feed_committed",
            "Commits in the change feed, over all streams. A worker's lag is this minus its "
            "treeclaim_feed_position; it catches up before each read.",
            value=position,
        )


class ResourceCollector(Collector):
    """Capacity, reserved amount and usage by resource class."""

    def __init__(self, store: Store, *, by_aggregate: bool) -> None:
        self._store = store
        self._by_aggregate = by_aggregate

    def collect(self) -> Iterable[Metric]:
        """Yield the sums over the cloud, and over each aggregate if they are wanted."""
        try:
            yield from _families("treeclaim_resource", [], self._store.read(totals.of_cloud))
            if self._by_aggregate:
                found = self._store.read(totals.of_aggregates)
                yield from _families("treeclaim_aggregate_resource", ["aggregate"], found)
        except StoreUnavailableError as error:
            _LOG.warning("No metrics of resources: %s", error.for_operators)


def _families(prefix: str, labels: list[str], found: list[totals.Total]) -> Iterator[Metric]:
    names = [*labels, "resource_class"]
    capacity = GaugeMetricFamily(
        f"{prefix}_capacity", "(total - reserved) x allocation_ratio.", labels=names
    )
    reserved = GaugeMetricFamily(f"{prefix}_reserved", "Reserved amount.", labels=names)
    used = GaugeMetricFamily(f"{prefix}_used", "Amount of all claims.", labels=names)
    for row in found:
        values = [*([row.aggregate] if labels else []), row.resource_class]
        capacity.add_metric(values, row.capacity)
        reserved.add_metric(values, row.reserved)
        used.add_metric(values, row.used)
    yield from (capacity, reserved, used)
