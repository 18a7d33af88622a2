# SPDX-License-Identifier: Apache-2.0
"""`treeclaim copy`: everything arrives, an interruption does no harm, differences are listed.

openstack-placement runs as a black box, from a virtual environment of its own; where that cannot be
made, its tests are skipped with that reason.
"""

import json
import os
import re
import signal
import subprocess
import uuid
from contextlib import ExitStack

import httpx
import pytest

from tests.clouds.bulk import write_world
from tests.databases import filled_database
from tests.peer import openstack_placement_on, treeclaim_on
from tests.proxy import Proxy
from tests.servers import TREECLAIM, eventually
from tests.service import FakeAdapter, InProcess, WithoutExtension, client_of, start_on
from tests.ui.changes import uuid_of
from tests.ui.worlds import small
from treeclaim.cli.main import main
from treeclaim.client import Client, ClientError, UnsupportedFeatureError
from treeclaim.client.copy import compare, copy
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology.file import parse_topology

PROVIDERS, CONSUMERS = 65, 10
"""Counts of the objects in the small world."""
OWNER = {"project_id": "p", "user_id": "u"}


def make_uuid(name):
    """Return a uuid made from a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def ignore_progress(_stage, _done, _total):
    """Report no progress."""


def write_small(url):
    write_world(url, small(hosts=9))


@pytest.fixture
def target(fresh_service):
    return Client(adapter=InProcess(fresh_service()))


@pytest.fixture
def source(fresh_service):
    return Client(adapter=InProcess(fresh_service()))


@pytest.fixture
def cloud(tmp_path):
    """A client of a service with nine nested trees and two flat ones."""
    with ExitStack() as stack:
        url = stack.enter_context(filled_database("sqlite", write_small, tmp_path))
        application = stack.enter_context(start_on(url, tmp_path))
        yield Client(adapter=InProcess(stack.enter_context(client_of(application))))


def add(client, text):
    """Add the providers of a topology."""
    apply_topology(client, parse_topology(text, "text"))


def hold(client, consumer, provider, amounts, **members):
    """Replace the amounts that a consumer has of a provider."""
    candidate = {"allocations": {provider: {"resources": amounts}}}
    client.claim(make_uuid(consumer), candidate, replace=True, **OWNER | members)


def read_documents(client):
    """Return the documents of all providers and consumers, without generations."""
    rows = client.providers()
    parts = ("inventories", "traits", "aggregates", "allocations")
    paths = ["/resource_providers"]
    paths += [f"/resource_providers/{row['uuid']}/{part}" for row in rows for part in parts]
    consumers = client.rows("/treeclaim/allocations", "consumers")
    paths += [f"/allocations/{row['uuid']}" for row in consumers]
    documents = {path: client.call("GET", path, extended=True) for path in sorted(paths)}
    for row in documents["/resource_providers"]["resource_providers"]:
        del row["links"]
    return re.sub(r'"\w*generation": \d+', "", json.dumps(documents, sort_keys=True))


def test_providers_and_consumers_arrive_and_another_copy_writes_nothing(cloud, target):
    stages = {}
    outcome = copy(cloud, target, lambda stage, done, total: stages.update({stage: (done, total)}))
    assert (outcome.providers, outcome.consumers) == (PROVIDERS, CONSUMERS)
    assert (outcome.refusal_texts, outcome.differences) == ([], [])
    assert all(done == total for done, total in stages.values())
    assert read_documents(cloud) == read_documents(target)
    sent = target._adapter.sent
    del sent[:]
    again = copy(cloud, target, ignore_progress)
    assert (again.providers, again.consumers) == (0, 0)
    assert again.unchanged_count == PROVIDERS + CONSUMERS
    assert {method for method, _ in sent} == {"GET"}


def test_differences_are_fixed_and_extra_target_providers_kept(cloud, target):
    copy(cloud, target, ignore_progress)
    add(target, "providers: [{name: own, inventories: {VCPU: 1}}]")
    hold(target, "own consumer", uuid_of(target, "own"), {"VCPU": 1})
    host, numa = (uuid_of(cloud, name) for name in ("host-1_numa0", "host-2_numa0"))
    path = f"/resource_providers/{host}"
    [changed] = cloud.get(f"{path}/allocations")["allocations"]
    [released] = cloud.get(f"/resource_providers/{numa}/allocations")["allocations"]
    target.call(
        "PUT", path, {"name": "other"} | {"parent_provider_uuid": uuid_of(cloud, "host-1")}
    )
    target.call("DELETE", f"{path}/traits")
    cloud.release(released)
    candidate = {"allocations": {host: {"resources": {"MEMORY_MB": 5}}}}
    cloud.claim(changed, candidate, project_id="other", user_id="u", replace=True)
    differences = compare(cloud, target, ignore_progress)
    assert differences[:4] == [
        f"provider {host} (host-1_numa0): name differs",
        f"provider {host} (host-1_numa0): traits differs",
        f"consumer {changed}: held differs",
        f"consumer {changed}: project differs",
    ]
    assert differences[-1] == f"consumer {released} has allocations at the target only"
    outcome = copy(cloud, target, ignore_progress)
    assert (outcome.providers, outcome.consumers) == (1, 1)
    assert outcome.differences == [differences[-1]]
    assert len(target.providers(name="own")) == 1


def test_consumer_is_copied_after_another_frees_room(source, target):
    add(source, "providers: [{name: host, inventories: {VCPU: 4}}]")
    host = uuid_of(source, "host")
    first, second = sorted(("first", "second"), key=make_uuid)
    hold(source, first, host, {"VCPU": 1})
    hold(source, second, host, {"VCPU": 3})
    copy(source, target, ignore_progress)
    hold(source, second, host, {"VCPU": 1})
    hold(source, first, host, {"VCPU": 3})
    outcome = copy(source, target, ignore_progress)
    assert (outcome.refusal_texts, outcome.differences) == ([], [])


HOST, PART, OTHER, RACK = (make_uuid(name) for name in ("host", "part", "other", "rack"))
CONDITION = f"/treeclaim/providers/{OTHER}/conditions/FAILING"
MIX = "/treeclaim/mixes/usual"
EXTENDED = f"""
providers:
- name: host
  uuid: {HOST}
  inventories: {{VCPU: {{total: 64, reserved: 1, allocation_ratio: 1.5}}, CUSTOM_SLICE: 7}}
  children:
  - name: part
    uuid: {PART}
    attributes: {{mem_gib: 80}}
    inventories:
      CUSTOM_PART: {{total: 3, consumes: [{{provider: host, resource_class: CUSTOM_SLICE, amount: 2}}]}}
      VCPU: 2
- {{name: other, uuid: {OTHER}, inventories: {{VCPU: 64}}, aggregates: [{RACK}]}}
"""


def fill_extension(client):
    """Everything of the extension: holds with draws, requests, conditions, mixes, names, attributes."""
    add(client, EXTENDED)
    client.call("POST", "/treeclaim/aggregates/names", {"names": {RACK: "rack one"}})
    client.call("PUT", MIX, {"requests": {"small": {"query": "resources=VCPU:1", "weight": 2}}})
    for name, terms, amount in (
        ("returning", {"returns": True, "projects": ["p2"], "note": "rack 7"}, 10),
        ("second", {"returns": True}, 6),
        ("plain", {"until": "2099-12-01T08:00:00Z"}, 5),
        ("drawn up", {"returns": True}, 2),
    ):
        hold(client, name, HOST, {"VCPU": amount}, hold=terms)
    # Draws all of one hold, and a part of the next.
    holds = [make_uuid("drawn up"), make_uuid("second")]
    hold(client, "drawing", HOST, {"VCPU": 8}, request="resources=VCPU:8", from_holds=holds)
    holds = [make_uuid("returning")]
    hold(client, "also drawing", HOST, {"VCPU": 3}, consumer_type="MIGRATION", from_holds=holds)
    both = {PART: {"resources": {"CUSTOM_PART": 1}}, OTHER: {"resources": {"VCPU": 1}}}
    client.claim(
        make_uuid("consuming"), {"allocations": both}, request=["resources=VCPU:1"], **OWNER
    )
    client.call("PUT", CONDITION, {"effect": "leave", "reason": "ECC errors"})
    condition = {"effect": "no_new", "on_use": True}
    client.call("PUT", f"/treeclaim/providers/{PART}/conditions/CLEANING", condition)


def test_all_extension_data_is_copied(source, target):
    fill_extension(source)
    lines = set(compare(source, target, ignore_progress))
    for word in ("hold", "condition FAILING", "mix usual", "name differs", "consumer"):
        assert any(word in line for line in lines), word
    outcome = copy(source, target, ignore_progress)
    assert (outcome.refusal_texts, outcome.differences) == ([], [])
    assert read_documents(source) == read_documents(target)
    ours, theirs = (list(client.provider_states(["conditions"])) for client in (source, target))
    assert [row["conditions"] for row in ours] == [row["conditions"] for row in theirs]
    again = copy(source, target, ignore_progress)
    assert (again.providers, again.consumers, again.differences) == (0, 0, [])


STOCK = {
    name: {
        "total": total,
        "consumes": [{"provider": HOST, "resource_class": "CUSTOM_SLICE", "amount": total - 1}],
    }
    for name, total in (("VCPU", 2), ("CUSTOM_PART", 3))
}
"""Inventories of the part, of which VCPU now consumes too."""


@pytest.mark.parametrize(
    ("method", "path", "body", "line"),
    [
        (
            "PUT",
            MIX,
            {"requests": {"x": {"query": "resources=VCPU:1", "weight": 1}}},
            "mix usual differs",
        ),
        ("PUT", CONDITION, {"effect": "no_new"}, "condition FAILING differs"),
        (
            "POST",
            "/treeclaim/requests",
            {"requests": {make_uuid("drawing"): None}},
            "request differs",
        ),
        (
            "POST",
            "/treeclaim/holds",
            {"holds": {make_uuid("plain"): {"note": "other"}}},
            "hold differs",
        ),
        ("POST", "/treeclaim/aggregates/names", {"names": {RACK: "other"}}, "name differs"),
        (
            "POST",
            "/treeclaim/providers",
            {"providers": [{"uuid": PART, "inventories": STOCK}]},
            "inventories differs",
        ),
    ],
)
def test_each_changed_extension_part_is_found_and_fixed(source, target, method, path, body, line):
    fill_extension(source)
    copy(source, target, ignore_progress)
    target.call(method, path, body)
    (difference,) = compare(source, target, ignore_progress)
    assert line in difference
    assert copy(source, target, ignore_progress).differences == []


def test_provider_name_taken_in_target_does_not_stop_the_copy(cloud, target):
    target.call("POST", "/resource_providers", json={"name": "host-1_numa0"})
    outcome = copy(cloud, target, ignore_progress)
    assert (outcome.providers, outcome.consumers) == (PROVIDERS - 7, CONSUMERS - 1)
    # The tree, and the consumer of a provider in it.
    assert len(outcome.refusal_texts) == len(outcome.differences) == 7 + 1


def test_an_unknown_standard_name_stops_before_anything_is_written(source, target):
    add(source, "providers: [{name: host, traits: [HW_CPU_X86_AVX2]}]")

    class Older(FakeAdapter):
        """The target as one with an older os-traits answers."""

        def __init__(self, adapter):
            self.adapter = adapter

        def send(self, method, path, headers, json):
            response = self.adapter.send(method, path, headers, json)
            if path == "/traits":
                return httpx.Response(200, text=response.text.replace('"HW_CPU_X86_AVX2",', ""))
            return response

    older = Client(adapter=Older(target._adapter))
    with pytest.raises(ClientError, match="HW_CPU_X86_AVX2"):
        copy(source, older, ignore_progress)
    assert target.providers() == []


def test_comparison_lists_data_missing_without_the_extension(source, target):
    fill_extension(source)
    copy(source, target, ignore_progress)
    without = Client(adapter=WithoutExtension(target._adapter))
    lines = compare(source, without, ignore_progress)
    for text in (
        f"hold {make_uuid('plain')}: hold differs",
        f"consumer {make_uuid('drawing')}: request differs",
        f"consumer {make_uuid('drawing')}: drawn_from differs",
        "condition FAILING differs",
        "mix usual differs",
        "name differs",
        "attributes differs",
    ):
        assert any(text in line for line in lines), text
    with pytest.raises(UnsupportedFeatureError, match="needs treeclaim"):
        copy(source, without, ignore_progress)


def test_a_source_without_the_extension_is_copied(cloud, target):
    without = Client(adapter=WithoutExtension(cloud._adapter))
    outcome = copy(without, target, ignore_progress)
    assert (outcome.providers, outcome.consumers) == (PROVIDERS, CONSUMERS)
    assert (outcome.refusal_texts, outcome.differences) == ([], [])
    assert compare(cloud, target, ignore_progress) == []


@pytest.mark.slow
def test_openstack_placement_is_copied_and_compared(peer, tmp_path, capsys):
    database = f"sqlite:///{tmp_path / 'peer.db'}"
    write_small(database)
    with (
        openstack_placement_on(database, tmp_path) as (first, _),
        treeclaim_on(f"sqlite:///{tmp_path / 'a.db'}", tmp_path) as (second, _),
        Client(first, "admin") as source,
        Client(second, "admin") as target,
    ):
        provider = {"resource_provider": {"uuid": uuid_of(source, "host-1")}}
        old = {"allocations": [provider | {"resources": {"DISK_GB": 1}}]}
        source.call("PUT", f"/allocations/{make_uuid('old')}", json=old, minor=1)
        outcome = copy(source, target, ignore_progress)
        assert (outcome.providers, outcome.consumers) == (PROVIDERS, CONSUMERS + 1)
        assert (outcome.refusal_texts, outcome.differences) == ([], [])
        arguments = ["copy", "--from", first, "--to", second, "--compare"]
        assert main(arguments) == 0
        target.release(make_uuid("old"))
        assert main(arguments) == 1
        assert make_uuid("old") in capsys.readouterr().out
        assert main(arguments[:-1]) == 0
        assert "1 consumers written" in capsys.readouterr().out


@pytest.mark.slow
def test_killed_copy_can_be_resumed(tmp_path):
    databases = [f"sqlite:///{tmp_path / name}.db" for name in ("source", "target")]
    write_small(databases[0])
    with (
        treeclaim_on(databases[0], tmp_path) as (first, _),
        treeclaim_on(databases[1], tmp_path) as (second, _),
        Client(first, "admin") as source,
        Client(second, "admin") as target,
    ):
        command = [*TREECLAIM, "copy", "--from", first, "--to"]
        # Providers are written by one call, consumers one by one.
        proxy = Proxy(httpx.URL(second).port)
        proxy.silent_at, proxy.silent_in = b"PUT /allocations/", 6
        running = subprocess.Popen(
            [*command, proxy.url(second)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(lambda: proxy.is_silent or running.poll() is not None, "the sixth consumer")
        os.kill(running.pid, signal.SIGKILL)
        running.wait(timeout=30)
        proxy.close()
        assert len(list(target.rows("/treeclaim/allocations", "consumers"))) == 5
        command.append(second)
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert result.returncode == 0, result.stderr
        assert f"{CONSUMERS - 5} consumers written" in result.stdout
        assert compare(source, target, ignore_progress) == []
