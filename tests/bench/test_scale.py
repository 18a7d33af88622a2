# SPDX-License-Identifier: Apache-2.0
"""The model of more machines does what is known of simple cases."""

from dataclasses import replace

from bench.scale.__main__ import PAGE, read
from bench.scale.coefficients import Coefficients, Cost
from bench.scale.model import Deployment, capacity, memory
from bench.scale.page import page

NOTHING = Cost(0.0, 0.0, 0.0, 0.0, 0.0)
COSTS = Coefficients(
    database="postgresql",
    search=replace(NOTHING, api_ms=2.0, round_trips=1.0),
    search_after_claim=replace(NOTHING, api_ms=10.0, round_trips=2.0),
    claim=replace(NOTHING, api_ms=2.0, round_trips=8.0),
    grouped_claim=replace(NOTHING, api_ms=1.0, round_trips=2.0),
    commit_ms=1.0,
    provider_bytes=500.0,
    copied_bytes=20.0,
    worker_bytes=1e8,
    service_bytes=1e8,
    load_seconds=10.0,
    rates=(),
    cores=2,
)


def test_machines_add_up_until_the_database_is_busy():
    costs = replace(COSTS, search=replace(COSTS.search, database_ms=0.2))
    rates = [capacity(costs, Deployment(number, 8, 10**6)) for number in (1, 10, 1000)]
    (one, first), (ten, _), (thousand, last) = rates
    assert first == "workers"
    assert last != "workers"
    assert one < ten <= 10.01 * one
    assert thousand < 1000 * one


def test_the_workers_of_a_machine_share_the_inventory():
    assert memory(COSTS, Deployment(1, 1, 10**6)) == 1e8 + 1e8 + 500 * 10**6
    assert memory(COSTS, Deployment(1, 3, 10**6)) == 1e8 + 3e8 + (500 + 2 * 20) * 10**6


def test_the_page_has_the_tables_of_what_was_measured():
    text = PAGE.read_text()
    assert page(text, read()) == text
