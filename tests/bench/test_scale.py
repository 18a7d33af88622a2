# SPDX-License-Identifier: Apache-2.0
"""The model and the simulation of more machines do what is known of simple cases."""

from dataclasses import replace

import pytest

from bench.scale.__main__ import PAGE, read
from bench.scale.coefficients import Coefficients, Cost
from bench.scale.model import Deployment, capacity, load, memory
from bench.scale.page import page
from bench.scale.simulation import Cloud

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
ALONE = replace(COSTS, grouped_claim=COSTS.claim)
"""A service without groups of claims."""


def pairs(costs, **options):
    """What clients get done in a second."""
    return Cloud(costs, **options).pairs_per_second(20.0)


def test_one_client_waits_for_all_of_its_search_and_its_claim():
    # 10 ms and 2 ms of the worker, 1 ms of the disk.
    assert pairs(ALONE, workers=1, clients=1) == pytest.approx(1000 / 13, rel=0.01)


def test_each_round_trip_to_a_distant_database_is_waited_for():
    found = pairs(ALONE, workers=1, clients=1, delay=0.001)
    assert found == pytest.approx(1000 / (13 + 10), rel=0.01)


def test_a_worker_is_never_busier_than_one_core():
    assert pairs(ALONE, workers=1, clients=16) == pytest.approx(1000 / 12, rel=0.05)


def test_workers_add_up_while_there_are_cores():
    one, two, four = (pairs(ALONE, workers=number, clients=16, cores=4) for number in (1, 2, 4))
    assert two == pytest.approx(2 * one, rel=0.05)
    assert four == pytest.approx(4 * one, rel=0.1)


def test_workers_beyond_the_cores_bring_nothing():
    two, eight = (pairs(ALONE, workers=number, clients=16, cores=2) for number in (2, 8))
    assert eight == pytest.approx(two, rel=0.1)


def test_claims_in_groups_leave_more_of_a_worker():
    assert pairs(COSTS, workers=1, clients=16) > 1.05 * pairs(ALONE, workers=1, clients=16)


def test_a_slow_disk_is_shared_by_groups():
    slow = replace(COSTS, commit_ms=100.0)
    # Alone, each claim would take a tenth of a second: ten in a second.
    assert pairs(slow, workers=1, clients=16) > 40


def test_machines_add_up_until_the_database_is_busy():
    costs = replace(COSTS, search=replace(COSTS.search, database_ms=0.2))
    rates = [capacity(costs, Deployment(number, 8, 10**6)) for number in (1, 10, 1000)]
    (one, first), (ten, _), (thousand, last) = rates
    assert first == "workers"
    assert last != "workers"
    assert one < ten <= 10.01 * one
    assert thousand < 1000 * one


def test_standbys_take_the_reads():
    costs = replace(COSTS, search=replace(COSTS.search, database_ms=0.2))
    near, with_standbys = (
        load(costs, Deployment(100, 8, 10**6, standbys=count), 10_000.0) for count in (0, 4)
    )
    assert with_standbys.database < near.database
    assert 0 < with_standbys.standby < near.database


def test_the_workers_of_a_machine_share_the_inventory():
    assert memory(COSTS, Deployment(1, 1, 10**6)) == 1e8 + 1e8 + 500 * 10**6
    assert memory(COSTS, Deployment(1, 3, 10**6)) == 1e8 + 3e8 + (500 + 2 * 20) * 10**6


def test_the_page_has_the_tables_of_what_was_measured():
    text = PAGE.read_text()
    assert page(text, read()) == text
