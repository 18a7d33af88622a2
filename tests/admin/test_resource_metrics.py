# SPDX-License-Identifier: Apache-2.0
"""Capacity metrics over the admin listener (contract page 99, section 6)."""

import json
from contextlib import contextmanager
from functools import partial

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.bodies import claim_of
from tests.cli.processes import call
from tests.ports import free_port
from tests.servers import (
    NO_CERTIFICATES,
    TREECLAIM,
    answers,
    eventually,
    running,
    service_environment,
)
from tests.service import HEADERS, client_of, services_on
from treeclaim.admin import capacity
from treeclaim.admin.capacity import Meter
from treeclaim.admin.collectors import FunctionCollector, collect_resources

HOST, NODE, OTHER = (f"6f5a2c54-3c06-4a5b-a1b2-7e0ce0b8d60{number}" for number in (1, 2, 3))
AGGREGATE, UNNAMED, EMPTY = (
    f"0a3c2d7e-91c5-4cbe-a8f3-5dfbc2c0a00{number}" for number in (1, 2, 3)
)
CONSUMER = "7b6a3c0e-2d2a-4b51-8d59-6d7a2f7c9001"
EXTENDED = HEADERS | {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
WORLD = {
    "providers": [
        {
            "uuid": HOST,
            "name": "host",
            "aggregates": [AGGREGATE, UNNAMED],
            "inventories": {"DISK_GB": {"total": 100}},
        },
        {
            "uuid": NODE,
            "name": "node",
            "parent_provider_uuid": HOST,
            "inventories": {"VCPU": {"total": 10, "reserved": 2, "allocation_ratio": 4.0}},
        },
        {"uuid": OTHER, "name": "other", "inventories": {"VCPU": {"total": 3}}},
    ]
}
CLAIM = claim_of({NODE: {"resources": {"VCPU": 3}}})


@contextmanager
def metered(folder, **options):
    """Run a standalone admin listener that measures; yield it, a client of the API, and a function that reads its samples."""
    address = f"127.0.0.1:{free_port()}"
    environment = service_environment(
        folder,
        OS_TREECLAIM__ADMIN_LISTEN=address,
        OS_TREECLAIM__METRICS_OF_RESOURCES="cloud",
        **options,
    )
    command, ready = [*TREECLAIM, "admin"], answers(f"http://{address}/live")
    with (
        services_on(folder) as (_, application),
        client_of(application, **EXTENDED) as api,
        running(command, environment, folder / "admin.log", ready) as server,
        # A restarting listener delays concurrent requests.
        httpx.Client(base_url=f"http://{address}", verify=NO_CERTIFICATES, timeout=60) as admin,
    ):
        yield server, api, lambda: samples(admin.get("/metrics").text)


def samples(text):
    """Return the values of all samples of resources and flavors."""
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    ours = ("treeclaim_resource", "treeclaim_aggregate", "treeclaim_fits")
    return {name: float(value) for name, value in pairs if name.startswith(ours)}


def flavor_file(folder, **queries):
    path = folder / "flavors.json"
    path.write_text(json.dumps({"requests": queries}))
    return path


@pytest.mark.slow
def test_scrape_has_cloud_sums_aggregate_sums_and_flavor_fits(tmp_path):
    path = flavor_file(tmp_path, small="resources=VCPU:1", large="resources=VCPU:16")
    named = f"{AGGREGATE},{EMPTY.upper()}"
    with metered(
        tmp_path,
        OS_TREECLAIM__METRICS_OF_AGGREGATES=named,
        OS_TREECLAIM__METRICS_OF_FLAVORS=str(path),
    ) as (_, api, read):
        assert api.post("/treeclaim/providers", json=WORLD).status_code == 200
        assert api.put(f"/allocations/{CONSUMER}", json=CLAIM).status_code == 204
        small = 'treeclaim_fits{flavor="small"}'
        result = eventually(
            lambda: now if (now := read()).get(small) == 32 else None, "the claim is measured"
        )

    def of(prefix, labels, **values):
        return {f"{prefix}_{name}{{{labels}}}": value for name, value in values.items()}

    cpu, disk = 'resource_class="VCPU"', 'resource_class="DISK_GB"'
    full = {"capacity": 100, "reserved": 0, "used": 0, "held": 0, "free": 100, "largest_free": 100}
    part = {"capacity": 32, "reserved": 2, "used": 3, "held": 0, "free": 29, "largest_free": 29}
    ours = f'aggregate="{AGGREGATE}"'
    assert result == {
        **of("treeclaim_resource", cpu, **part | {"capacity": 35, "free": 32}),
        **of("treeclaim_resource", disk, **full),
        # The root is in the aggregate, but not the node.
        **of("treeclaim_aggregate_resource", f"{ours},{cpu}", **part),
        **of("treeclaim_aggregate_resource", f"{ours},{disk}", **full),
        "treeclaim_resource_metrics_left_out": 0,
        small: 32,
        'treeclaim_fits_when_empty{flavor="small"}': 35,
        'treeclaim_fits{flavor="large"}': 1,
        'treeclaim_fits_when_empty{flavor="large"}': 2,
    }


@pytest.mark.slow
def test_flavor_with_unknown_names_does_not_affect_others(tmp_path):
    path = flavor_file(
        tmp_path, wrong="resources=VCPU:1&required=CUSTOM_NONE", right="resources=VCPU:1"
    )
    with metered(tmp_path, OS_TREECLAIM__METRICS_OF_FLAVORS=str(path)) as (server, api, read):
        api.post("/treeclaim/providers", json=WORLD)
        eventually(lambda: read().get('treeclaim_fits{flavor="right"}') == 35, "it is measured")
        assert not [name for name in read() if "wrong" in name]
        assert "How many 'wrong' fit is unknown: " in server.log.read_text()


@contextmanager
def collected(folder, *bodies, aggregates=()):
    """Create providers by batches; yield a meter in this process, a client, and a function that reads the samples."""
    with services_on(folder) as (services, application), client_of(application, **EXTENDED) as api:
        for body in bodies:
            assert api.post("/treeclaim/providers", json=body).status_code == 200
        meter = Meter(services.store, aggregates, {}, None)
        registry = CollectorRegistry()
        registry.register(FunctionCollector(partial(collect_resources, meter)))
        yield meter, api, lambda: samples(generate_latest(registry).decode())


@pytest.mark.slow
def test_number_of_series_is_bounded(tmp_path):
    classes = {f"CUSTOM_CLASS_{number}": {"total": 1} for number in range(2_100)}
    entry = {"uuid": HOST, "name": "h", "inventories": classes, "aggregates": [AGGREGATE]}
    body = {"providers": [entry], "create_names": True}
    with collected(tmp_path, body, aggregates=[AGGREGATE]) as (meter, _, read):
        meter.measure()
        result = read()
        assert result["treeclaim_resource_metrics_left_out"] == 2_200
        assert len(result) == 6 * 2_000 + 1


@pytest.mark.slow
def test_held_amounts_are_part_of_used_amounts(tmp_path):
    consumed = {"provider": HOST, "resource_class": "DISK_GB", "amount": 2}
    inventories = {"VCPU": {"total": 10, "consumes": [consumed]}}
    batches = (WORLD, {"providers": [{"uuid": NODE, "inventories": inventories}]})
    hold = {name: value for name, value in CLAIM.items() if name != "consumer_type"} | {"hold": {}}
    with collected(tmp_path, *batches, aggregates=[AGGREGATE]) as (meter, api, read):
        assert api.put(f"/allocations/{CONSUMER}", json=hold).status_code == 204
        meter.measure()
        result = read()
        # Each consumes two units of the host's disk.
        for name, amount in (("VCPU", 3), ("DISK_GB", 6)):
            labels = f'resource_class="{name}"'
            ours = f'aggregate="{AGGREGATE}",{labels}'
            assert result[f"treeclaim_resource_held{{{labels}}}"] == amount
            assert result[f"treeclaim_aggregate_resource_held{{{ours}}}"] == amount
        assert result['treeclaim_resource_used{resource_class="VCPU"}'] == 3


def test_old_values_are_not_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(capacity, "_OLDEST_SECONDS", 0.5)
    with collected(tmp_path, WORLD) as (meter, _, read):
        assert read() == {}
        meter.measure()
        assert 'treeclaim_resource_used{resource_class="VCPU"}' in read()
        eventually(lambda: read() == {}, "they are too old")
        # Without changes, the same values get a new time.
        meter.measure()
        assert 'treeclaim_resource_used{resource_class="VCPU"}' in read()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("METRICS_OF_AGGREGATES", "none-such", "'none-such' is not a uuid"),
        ("METRICS_OF_AGGREGATES", ",".join([AGGREGATE] * 501), "501 are more than 500"),
        ("METRICS_OF_FLAVORS", "/none/such.json", "/none/such.json: "),
    ],
)
def test_config_check_reports_unmeasurable_metrics_options(tmp_path, name, value, words):
    environment = service_environment(tmp_path, OS_TREECLAIM__METRICS_OF_RESOURCES="cloud")
    result = call(environment | {f"OS_TREECLAIM__{name}": value}, "config", "check")
    assert result.returncode == 1
    assert words in result.stderr


def test_config_check_reports_metrics_options_without_effect(tmp_path):
    environment = service_environment(tmp_path, OS_TREECLAIM__METRICS_OF_AGGREGATES=AGGREGATE)
    result = call(environment, "config", "check")
    assert (
        "metrics_of_aggregates: has no effect while metrics_of_resources = none" in result.stderr
    )
