# SPDX-License-Identifier: Apache-2.0
"""`treeclaim load` against a running service: what a file leaves out, what it empties, the diff."""

import re
import signal
import subprocess
import uuid

import httpx
import pytest

from tests.cli.processes import call
from tests.cli.services import client_in, refused, served, succeed
from tests.proxy import Proxy
from tests.servers import TREECLAIM, eventually
from treeclaim.client import Client
from treeclaim.client.session import BATCH


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment of commands that talk to a service of this module."""
    with served(tmp_path_factory.mktemp("service")) as variables:
        yield variables


@pytest.fixture
def cloud(environment, tmp_path):
    """A host with a child, with something of everything, and shorthands to look at them."""
    with client_in(environment) as client:
        yield Cloud(environment, tmp_path, client)


class Cloud:
    """A tree of two providers with names of its own."""

    def __init__(self, environment, folder, client):
        self.environment = environment
        self.host = f"host-{uuid.uuid4()}"
        self.child = f"{self.host}-child"
        self.file = folder / "topology.yaml"
        self.client = client
        self.load(
            f"""
providers:
  - name: {self.host}
    children:
      - name: {self.child}
        inventories: {{VCPU: {{total: 8, allocation_ratio: 4.0}}, MEMORY_MB: 512}}
        traits: [HW_NUMA_ROOT, CUSTOM_A]
        aggregates: [g]
"""
        )

    def load(self, text, *options):
        self.file.write_text(text)
        return succeed(self.environment, "load", str(self.file), *options)

    def refuse(self, text, *options):
        self.file.write_text(text)
        return refused(self.environment, "load", str(self.file), *options)

    def state(self):
        (provider,) = self.client.providers(name=self.child)
        path = f"/resource_providers/{provider['uuid']}"
        inventories = self.client.get(f"{path}/inventories")["inventories"]
        return {
            "parent": provider["parent_provider_uuid"],
            "inventories": {
                name: (fields["total"], fields["allocation_ratio"])
                for name, fields in inventories.items()
            },
            "traits": set(self.client.get(f"{path}/traits")["traits"]),
            "aggregates": self.client.get(f"{path}/aggregates")["aggregates"],
        }


def test_omitted_parts_of_an_entry_are_kept(cloud):
    before = cloud.state()
    cloud.load(f"providers: [{{name: {cloud.child}, inventories: {{VCPU: 16}}}}]")
    expected = before["inventories"] | {"VCPU": (16, 4.0)}
    assert cloud.state() == before | {"inventories": expected}


def test_omitted_list_items_are_removed_only_with_prune(cloud):
    text = f"providers: [{{name: {cloud.child}, inventories: {{VCPU: 8}}, traits: [CUSTOM_B]}}]"
    before = cloud.state()
    cloud.load(text)
    assert cloud.state() == before | {"traits": {"HW_NUMA_ROOT", "CUSTOM_A", "CUSTOM_B"}}
    cloud.load(text, "--prune")
    assert cloud.state() == before | {"traits": {"CUSTOM_B"}, "inventories": {"VCPU": (8, 4.0)}}


def interrupted(process):
    """The output of a process after Ctrl-C, which is pressed again if the first came too early.

    Python looks at signals between its steps. What comes after the last look and before a system
    call that waits is seen when that call returns, or when another signal breaks it off.
    """
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=20)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=20)[1]


def test_file_errors_are_reported_without_a_service(cloud):
    elsewhere = cloud.environment | {"TREECLAIM_ENDPOINT": "http://127.0.0.1:9"}
    cloud.file.write_text("providers: [{name: a}, {name: a}]")
    message = refused(elsewhere, "load", str(cloud.file))
    assert "it can stand for one only" in message


def test_empty_part_in_the_file_is_emptied(cloud):
    cloud.load(
        f"providers: [{{name: {cloud.child}, parent: null, traits: [], inventories: {{}}, "
        "aggregates: []}]"
    )
    assert cloud.state() == {
        "parent": None,
        "inventories": {},
        "traits": set(),
        "aggregates": [],
    }


PRUNED = """
providers:
- name: pruned
  inventories: {{CUSTOM_SLICE: 7, VCPU: 8}}
  children:
  - {{name: used, inventories: {{PCPU: 4}}, children: [{{name: unused-below-used}}]}}
  - name: with-used-child
    inventories: {{DISK_GB: 9}}
    children: [{{name: used-child, inventories: {{VGPU: 2}}}}, {{name: unused-child}}]
  - {{name: unused}}
  - name: loses-inventories
    inventories: {{PCPU: 4, VGPU: 4}}
    children: []
  - {{name: consumes, inventories: {{CUSTOM_PART: {{total: 7, consumes: [{consumed}]}}}}}}
"""
LESS = """
providers:
- name: pruned
  inventories: {VCPU: 8}
  children:
  - {name: loses-inventories, inventories: {PCPU: 4}, children: []}
"""


def test_prune_dry_run_matches_the_real_run(environment, client, tmp_path):
    file = tmp_path / "pruned.yaml"
    file.write_text(
        PRUNED.format(consumed="{provider: pruned, resource_class: CUSTOM_SLICE, amount: 1}")
    )
    succeed(environment, "load", str(file))
    by_name = {row["name"]: row["uuid"] for row in client.providers()}
    held = {
        by_name["used"]: {"resources": {"PCPU": 1}},
        by_name["used-child"]: {"resources": {"VGPU": 1}},
        by_name["loses-inventories"]: {"resources": {"VGPU": 2}},
    }
    client.claim(str(uuid.uuid4()), {"allocations": held}, project_id="p", user_id="u")
    file.write_text(LESS)
    promised = call(environment, "load", str(file), "--prune", "--dry-run")
    assert len(client.providers(in_tree=by_name["pruned"])) == 9
    result = call(environment, "load", str(file), "--prune")
    assert (promised.returncode, result.returncode) == (1, 1)
    assert (
        promised.stdout.splitlines()[-1].replace("would be ", "") == result.stdout.splitlines()[-1]
    )
    assert (
        refused_names(promised)
        == refused_names(result)
        == {
            "used",
            "with-used-child",
            "used-child",
            "loses-inventories",
            "pruned",
        }
    )
    remaining = {row["name"] for row in client.providers(in_tree=by_name["pruned"])}
    assert remaining == {"pruned", "used", "with-used-child", "used-child", "loses-inventories"}
    assert re.search("loses-inventories .*VGPU.*in use", promised.stderr)
    assert "used: cannot be deleted, as 1 PCPU of it are in use" in promised.stderr


def refused_names(done):
    """The names of the providers that a command says are refused."""
    return set(re.findall(r"^refused: ([a-z-]+)", done.stderr, re.MULTILINE))


def test_a_provider_with_a_uuid_that_is_there_is_renamed(cloud):
    (before,) = cloud.client.providers(name=cloud.child)
    shown = cloud.load(f"providers: [{{name: {cloud.child}-2, uuid: {before['uuid']}}}]")
    assert "1 changed" in shown
    (after,) = cloud.client.providers(uuid=before["uuid"])
    assert after["name"] == f"{cloud.child}-2"
    assert after["parent_provider_uuid"] == before["parent_provider_uuid"]


def test_concurrent_changes_are_kept(cloud, monkeypatch):
    """The provider's generation changes between reading and writing."""
    original = Client.call
    changes_to_come = [1, 2]

    def call_after_another(client, method, path, json=None, **options):
        if (method, path) == ("POST", "/treeclaim/providers") and changes_to_come:
            (provider,) = cloud.client.providers(name=cloud.child)
            traits_path = f"/resource_providers/{provider['uuid']}/traits"
            document = cloud.client.get(traits_path)
            document["traits"].append(f"CUSTOM_OTHER_{changes_to_come.pop()}")
            original(cloud.client, "PUT", traits_path, document)
        return original(client, method, path, json, **options)

    for number in (1, 2):
        cloud.client.call("PUT", f"/traits/CUSTOM_OTHER_{number}")
    monkeypatch.setattr(Client, "call", call_after_another)
    cloud.load(f"providers: [{{name: {cloud.child}, traits: [CUSTOM_Z]}}]")
    foreign_traits = {"CUSTOM_OTHER_1", "CUSTOM_OTHER_2"}
    assert cloud.state()["traits"] == {"HW_NUMA_ROOT", "CUSTOM_A", "CUSTOM_Z", *foreign_traits}


CONSUMING = """
providers:
  - name: gpu_4g.24gb_at0
    inventories:
      CUSTOM_MIG_4G_24GB:
        total: 1
        consumes: [{provider: gpu, resource_class: CUSTOM_MIG_MEMORY_SLICE_0, amount: 1}]
"""


def test_dry_run_shows_changes_of_consumption(cloud):
    cloud.load(f"providers: [{{name: {cloud.host}, children: [{{name: gpu, mig: a30}}]}}]")
    shown = cloud.load(CONSUMING, "--dry-run")
    assert "inventories.CUSTOM_MIG_4G_24GB.consumes: 1 CUSTOM_MIG_" in shown
    assert "→ 1 CUSTOM_MIG_MEMORY_SLICE_0 of" in shown


@pytest.mark.slow
def test_a_dash_reads_standard_input(environment, client):
    result = subprocess.run(
        [*TREECLAIM, "load", "-"],
        env=environment,
        input="providers: [{name: from-standard-input}]",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "1 created" in result.stdout
    assert client.providers(name="from-standard-input")


@pytest.mark.slow
def test_interrupted_load_reports_progress_and_resumes(environment, client, tmp_path):
    file = tmp_path / "many.yaml"
    file.write_text(
        "providers: [{name: 'many-{n}', count: 5000, traits: [HW_NUMA_ROOT], "
        "inventories: {VCPU: 8}}]"
    )
    proxy = Proxy(httpx.URL(environment["TREECLAIM_ENDPOINT"]).port)
    proxy.silent_at, proxy.silent_in = b"POST /treeclaim/providers ", 3
    running = subprocess.Popen(
        [*TREECLAIM, "load", str(file)],
        env=environment | {"TREECLAIM_ENDPOINT": proxy.url(environment["TREECLAIM_ENDPOINT"])},
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: proxy.is_silent or running.poll() is not None, "the third write")
    message = interrupted(running)
    proxy.close()
    assert running.returncode == 130
    assert "Traceback" not in message
    assert f"Interrupted: {2 * BATCH} of 5000" in message
    assert "again" in message
    shown = succeed(environment, "load", str(file))
    created, changed, unchanged = map(int, re.findall(r"(\d+) (?:created|changed|unch)", shown))
    assert created + changed + unchanged == 5000
    assert unchanged >= 2 * BATCH
