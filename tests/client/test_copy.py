# SPDX-License-Identifier: Apache-2.0
"""`treeclaim copy`: everything arrives, an interruption does no harm, differences are told.

openstack-placement runs as a black box, from a virtual environment of its own; where that cannot be
made, its tests are skipped and say so.
"""

import os
import re
import signal
import subprocess
import sys
import uuid

import httpx
import pytest

from tests.peer import openstack_placement_on, treeclaim_on
from tests.proxy import Proxy
from tests.servers import eventually
from tests.service import FakeAdapter, InProcess, WithoutExtension
from treeclaim.cli.main import main
from treeclaim.client import Client, ClientError, UnsupportedFeatureError
from treeclaim.client.aggregates import name_aggregates
from treeclaim.client.copy import compare, copy

HOSTS, CHILDREN, CONSUMERS = 60, 4, 120
WHO = {"project_id": "p", "user_id": "u"}
SPACE = uuid.UUID("0d2f9d44-6a1e-4ddb-8a05-6d5bb30c9f11")


def named(name):
    """The uuid that goes with a name."""
    return str(uuid.uuid5(SPACE, name))


def silent(_stage, _done, _total):
    """Tell nobody how far it is."""


def provider(client, name, parent=None, **parts):
    uuid = named(name)
    body = {"name": name, "uuid": uuid, "parent_provider_uuid": parent and named(parent)}
    client.call("POST", "/resource_providers", json=body)
    path = f"/resource_providers/{uuid}"
    for part, value in parts.items():
        generation = client.get(path)["generation"]
        body = {part: value, "resource_provider_generation": generation}
        client.call("PUT", f"{path}/{part}", json=body)


def fill(client, hosts=HOSTS, children=CHILDREN, consumers=CONSUMERS):
    """Trees with children, and consumers that hold of two providers each."""
    client.call("PUT", "/traits/CUSTOM_A")
    client.call("PUT", "/resource_classes/CUSTOM_B")
    for number in range(hosts):
        host = f"host {number}"
        provider(
            client,
            host,
            inventories={"MEMORY_MB": {"total": 1000, "reserved": 10, "allocation_ratio": 1.5}},
            traits=["CUSTOM_A", "HW_CPU_X86_AVX2"] if number % 2 else ["CUSTOM_A"],
            aggregates=[named(f"rack {number % 3}")],
        )
        above = host
        for child in range(children):
            name = f"{host} child {child}"
            provider(
                client, name, above, inventories={"VCPU": {"total": 4}, "CUSTOM_B": {"total": 4}}
            )
            # Some of them are grandchildren.
            above = name if child % 2 == 0 else host
    for number in range(consumers):
        host = f"host {number % hosts}"
        child = named(f"{host} child {number % children}")
        claims = {
            named(host): {"resources": {"MEMORY_MB": 100}},
            child: {"resources": {"VCPU": 1, "CUSTOM_B": 1}},
        }
        kind = "MIGRATION" if number % 5 == 0 else "INSTANCE"
        client.claim(
            named(f"consumer {number}"), {"allocations": claims}, consumer_type=kind, **WHO
        )


@pytest.fixture
def clients(fresh_service):
    return [Client(adapter=InProcess(fresh_service())) for _ in range(2)]


@pytest.mark.slow
def test_300_nested_providers_and_their_consumers_arrive(clients):
    source, target = clients
    fill(source)
    stages = {}
    outcome = copy(
        source, target, lambda stage, done, total: stages.update({stage: (done, total)})
    )
    assert (outcome.providers, outcome.consumers) == (HOSTS * (CHILDREN + 1), CONSUMERS)
    assert (outcome.refused, outcome.differences) == ([], [])
    assert all(done == total for done, total in stages.values())
    for path in (
        f"/allocations/{named('consumer 5')}",
        f"/resource_providers/{named('host 3')}/aggregates",
        "/usages?project_id=p",
    ):
        ours, theirs = (client.get(path) for client in clients)
        for answer in (ours, theirs):
            # How often a provider was written differs.
            answer.pop("resource_provider_generation", None)
            for allocation in answer.get("allocations", {}).values():
                allocation.pop("generation")
        assert ours == theirs
    ours, theirs = (
        {
            provider["uuid"]: (
                provider["name"],
                provider["parent_provider_uuid"],
                provider["root_provider_uuid"],
            )
            for provider in client.providers()
        }
        for client in clients
    )
    assert ours == theirs
    sent = target._adapter.sent
    del sent[:]
    again = copy(source, target, silent)
    assert (again.providers, again.consumers) == (0, 0)
    assert again.unchanged == HOSTS * (CHILDREN + 1) + CONSUMERS
    assert {method for method, _ in sent} == {"GET"}


@pytest.mark.slow
def test_differences_are_fixed_and_extra_target_providers_kept(clients):
    source, target = clients
    fill(source, 2, 2, 4)
    copy(source, target, silent)
    provider(target, "own", inventories={"VCPU": {"total": 1}})
    claim = {"allocations": {named("own"): {"resources": {"VCPU": 1}}}}
    target.claim(named("own consumer"), claim, **WHO)
    path = f"/resource_providers/{named('host 1')}"
    target.call("PUT", path, json={"name": "other", "parent_provider_uuid": None})
    target.call("DELETE", f"{path}/traits")
    source.release(named("consumer 0"))
    source.claim(
        named("consumer 1"),
        {"allocations": {named("host 0"): {"resources": {"MEMORY_MB": 5}}}},
        project_id="other",
        user_id="u",
        replace=True,
    )
    differences = compare(source, target, silent)
    assert differences == [
        f"provider {named('host 1')} (host 1): name differs",
        f"provider {named('host 1')} (host 1): traits differs",
        f"consumer {named('consumer 1')}: held differs",
        f"consumer {named('consumer 1')}: project differs",
        f"consumer {named('consumer 0')} holds something at the target only",
    ]
    outcome = copy(source, target, silent)
    assert (outcome.providers, outcome.consumers) == (1, 1)
    assert outcome.differences == [differences[-1]]
    assert len(target.providers(name="own")) == 1


def test_consumer_is_copied_after_another_frees_room(clients):
    source, target = clients
    provider(source, "host", inventories={"VCPU": {"total": 4, "max_unit": 4}})
    first, second = sorted(named(f"consumer {number}") for number in range(2))

    def hold(client, consumer, amount):
        claim = {"allocations": {named("host"): {"resources": {"VCPU": amount}}}}
        client.claim(consumer, claim, replace=True, **WHO)

    hold(source, first, 1)
    hold(source, second, 3)
    copy(source, target, silent)
    hold(source, second, 1)
    hold(source, first, 3)
    outcome = copy(source, target, silent)
    assert (outcome.refused, outcome.differences) == ([], [])


def fill_extension(client):
    """Everything of the extension: holds with draws, requests, conditions, mixes, names, attributes."""
    for name in ("CUSTOM_SLICE", "CUSTOM_PART"):
        client.call("PUT", f"/resource_classes/{name}")
    provider(client, "host", inventories={"VCPU": {"total": 64}, "CUSTOM_SLICE": {"total": 7}})
    provider(client, "other", inventories={"VCPU": {"total": 64}}, aggregates=[named("rack")])
    consumed = {"provider": named("host"), "resource_class": "CUSTOM_SLICE", "amount": 2}
    entry = {
        "uuid": named("part"),
        "name": "part",
        "parent_provider_uuid": named("host"),
        "attributes": {"mem_gib": 80},
        "inventories": {
            "CUSTOM_PART": {"total": 3, "consumes": [consumed]},
            "VCPU": {"total": 2},
        },
    }
    client.apply_providers([entry])
    name_aggregates(client, {named("rack"): "rack one"})
    put_mix(client, {"small": {"query": "resources=VCPU:1", "weight": 2}})
    for name, hold, amount in (
        ("returning", {"returns": True, "projects": ["p2"], "note": "rack 7"}, 10),
        ("second", {"returns": True}, 6),
        ("plain", {"until": "2099-12-01T08:00:00Z"}, 5),
        ("drawn up", {"returns": True}, 2),
    ):
        claim = {"allocations": {named("host"): {"resources": {"VCPU": amount}}}}
        client.claim(named(name), claim, hold=hold, **WHO)
    query = "resources=VCPU:8"
    claim = {"allocations": {named("host"): {"resources": {"VCPU": 8}}}}
    # Draws all of one hold, and a part of the next.
    holds = [named("drawn up"), named("second")]
    client.claim(named("drawing"), claim, request=query, from_holds=holds, **WHO)
    claim = {"allocations": {named("host"): {"resources": {"VCPU": 3}}}}
    client.claim(named("also drawing"), claim, from_holds=[named("returning")], **WHO)
    parts = {named("part"): {"CUSTOM_PART": 1}, named("other"): {"VCPU": 1}}
    consuming = {
        "allocations": {uuid: {"resources": resources} for uuid, resources in parts.items()}
    }
    client.claim(named("consuming"), consuming, request=["resources=VCPU:1"], **WHO)
    put_condition(client, "other", "FAILING", effect="leave", reason="ECC errors")
    put_condition(client, "part", "CLEANING", effect="no_new", on_use=True)


def put_mix(client, requests):
    client.call("PUT", "/treeclaim/mixes/usual", {"requests": requests})


def consume_by_vcpu(client):
    """Let the child's VCPU, which consume nothing, consume slices of the host."""
    consumed = {"provider": named("host"), "resource_class": "CUSTOM_SLICE", "amount": 1}
    (row,) = client.provider_states(["inventories"], uuid=named("part"))
    row["inventories"]["VCPU"]["consumes"] = [consumed]
    client.apply_providers([{"uuid": row["uuid"], "inventories": row["inventories"]}])


def put_condition(client, name, key, **members):
    client.call("PUT", f"/treeclaim/providers/{named(name)}/conditions/{key}", members)


def test_all_extension_data_is_copied(clients):
    source, target = clients
    fill_extension(source)
    lines = set(compare(source, target, silent))
    for word in ("hold", "condition FAILING", "mix usual", "name differs", "consumer"):
        assert any(word in line for line in lines), word
    outcome = copy(source, target, silent)
    assert (outcome.refused, outcome.differences) == ([], [])
    for consumer in (
        "returning",
        "second",
        "plain",
        "drawn up",
        "drawing",
        "also drawing",
        "consuming",
    ):
        path = f"/allocations/{named(consumer)}"
        ours, theirs = (client.call("GET", path, extended=True) for client in clients)
        for document in (ours, theirs):
            document.pop("consumer_generation", None)
            for allocation in document["allocations"].values():
                allocation.pop("generation")
        assert ours == theirs
    ours, theirs = (
        {row["uuid"]: row["conditions"] for row in client.provider_states(["conditions"])}
        for client in clients
    )
    assert ours == theirs
    again = copy(source, target, silent)
    assert (again.providers, again.consumers, again.differences) == (0, 0, [])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda it: put_mix(it, {"x": {"query": "resources=VCPU:1", "weight": 1}}),
            "mix usual differs",
        ),
        (
            lambda it: put_condition(it, "other", "FAILING", effect="no_new"),
            "condition FAILING differs",
        ),
        (
            lambda it: it.call(
                "POST", "/treeclaim/requests", {"requests": {named("drawing"): None}}
            ),
            "request differs",
        ),
        (
            lambda it: it.call(
                "POST", "/treeclaim/holds", {"holds": {named("plain"): {"note": "other"}}}
            ),
            "hold differs",
        ),
        (lambda it: name_aggregates(it, {named("rack"): "other"}), "name differs"),
        (consume_by_vcpu, "inventories differs"),
    ],
)
def test_each_changed_extension_part_is_found_and_fixed(clients, change, line):
    source, target = clients
    fill_extension(source)
    copy(source, target, silent)
    change(target)
    (difference,) = compare(source, target, silent)
    assert line in difference
    assert copy(source, target, silent).differences == []


@pytest.mark.slow
def test_provider_name_taken_in_target_does_not_stop_the_copy(clients):
    source, target = clients
    fill(source, 3, 1, 3)
    target.call("POST", "/resource_providers", json={"name": "host 1"})
    outcome = copy(source, target, silent)
    assert (outcome.providers, outcome.consumers) == (4, 2)
    # The provider, its child, and the consumer of both.
    assert len(outcome.refused) == 3
    assert {named("host 1"), named("host 1 child 0"), named("consumer 1")} == {
        line.split()[1].rstrip(":") for line in outcome.refused
    }
    assert len(outcome.differences) == 3


def test_an_unknown_standard_name_stops_before_anything_is_written(clients):
    source, target = clients
    fill(source, 2, 1, 0)

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
        copy(source, older, silent)
    assert target.providers() == []


def test_comparison_lists_data_missing_without_the_extension(clients):
    source, target = clients
    fill_extension(source)
    copy(source, target, silent)
    without = Client(adapter=WithoutExtension(target._adapter))
    lines = compare(source, without, silent)
    for text in (
        f"hold {named('plain')}: hold differs",
        f"consumer {named('drawing')}: request differs",
        f"consumer {named('drawing')}: drawn_from differs",
        "condition FAILING differs",
        "mix usual differs",
        "name differs",
        "attributes differs",
    ):
        assert any(text in line for line in lines), text
    with pytest.raises(UnsupportedFeatureError, match="needs treeclaim"):
        copy(source, without, silent)


def test_a_source_without_the_extension_is_copied(clients):
    source, target = clients
    fill(source, 3, 2, 4)
    without = Client(adapter=WithoutExtension(source._adapter))
    outcome = copy(without, target, silent)
    assert (outcome.providers, outcome.consumers) == (9, 4)
    assert (outcome.refused, outcome.differences) == ([], [])
    assert compare(source, target, silent) == []


@pytest.fixture(scope="module")
def peer(peer, tmp_path_factory):
    """A function that starts an empty openstack-placement."""

    def start(name):
        folder = tmp_path_factory.mktemp(name)
        return openstack_placement_on(f"sqlite:///{folder / 'peer.db'}", folder)

    return start


@pytest.mark.slow
def test_openstack_placement_is_copied_and_compared(peer, tmp_path, capsys):
    with (
        peer("source") as (first, _),
        treeclaim_on(f"sqlite:///{tmp_path / 'a.db'}", tmp_path) as (second, _),
        Client(first, "admin") as source,
        Client(second, "admin") as target,
    ):
        fill(source, 4, 3, 8)
        old = {
            "allocations": [
                {"resource_provider": {"uuid": named("host 0")}, "resources": {"MEMORY_MB": 1}}
            ]
        }
        source.call("PUT", f"/allocations/{named('old')}", json=old, minor=1)
        outcome = copy(source, target, silent)
        assert (outcome.providers, outcome.consumers) == (16, 9)
        assert (outcome.refused, outcome.differences) == ([], [])
        arguments = ["copy", "--from", first, "--to", second, "--compare"]
        assert main(arguments) == 0
        target.release(named("consumer 2"))
        assert main(arguments) == 1
        assert named("consumer 2") in capsys.readouterr().out
        assert main(arguments[:-1]) == 0
        assert "1 consumers written" in capsys.readouterr().out


@pytest.mark.slow
def test_killed_copy_can_be_resumed(tmp_path):
    folders = [tmp_path / name for name in ("source", "target")]
    for folder in folders:
        folder.mkdir()
    with (
        treeclaim_on(f"sqlite:///{folders[0] / 'a.db'}", folders[0]) as (first, _),
        treeclaim_on(f"sqlite:///{folders[1] / 'a.db'}", folders[1]) as (second, _),
        Client(first, "admin") as source,
        Client(second, "admin") as target,
    ):
        fill(source, 100, 1, 100)
        command = [sys.executable, "-m", "treeclaim", "copy", "--from", first, "--to"]
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
        (written,) = re.findall(r"(\d+) consumers written", result.stdout)
        assert int(written) == 95
        assert compare(source, target, silent) == []
