# SPDX-License-Identifier: Apache-2.0
"""The metrics that files in deploy/ may name."""

from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from tests.service import fresh_database
from treeclaim import metrics  # noqa: F401 - defines the metrics
from treeclaim.admin import Census
from treeclaim.admin.capacity import Fits, Measurement
from treeclaim.admin.collectors import (
    collect_expiries,
    collect_feed,
    collect_processes,
    collect_resources,
    collect_workers,
)
from treeclaim.store import DatabaseSettings, Store


@pytest.fixture(scope="module")
def known_metrics(tmp_path_factory):
    """The names of all samples that a scrape can have."""
    store = Store(DatabaseSettings(fresh_database(tmp_path_factory.mktemp("known"))))
    measurement = Measurement(0.0, aggregates={"rack": {}}, fits={"small": Fits(1, 2)})
    meter: Any = SimpleNamespace(get_latest=lambda: measurement)
    families = [
        *REGISTRY.collect(),
        *collect_expiries([]),
        *collect_feed(store),
        *collect_processes(),
        *collect_resources(meter),
        *collect_workers(lambda: Census([], [])),
    ]
    parts = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
    names = {
        f"{family.name}{part}" for family in families for part in parts.get(family.type, [""])
    }
    store.close()
    return names
