# SPDX-License-Identifier: Apache-2.0
"""`candidates`, `explain`, `claim`, `release` and `tree` as a person runs them."""

import json
import re

import pytest

from tests.cli.processes import call, run
from tests.cli.services import claim, succeed


@pytest.mark.slow
def test_candidates_are_printed_as_a_table(environment):
    result = run(
        environment,
        "candidates",
        "resources_CPU=VCPU:4",
        "resources_FPGA=FPGA:1",
        "same_subtree=_CPU,_FPGA",
    )
    assert result.returncode == 0, result.stderr
    shown = result.stdout
    assert "4 candidates" in shown
    assert "host-1_numa0: 4 VCPU" in shown
    assert "\x1b[" not in shown, "colours are for terminals"


def test_flavor_is_accepted_as_query(environment, tmp_path):
    file = tmp_path / "flavor.yaml"
    file.write_text("{vcpus: 2, ram: 512, extra_specs: {'resources_GPU:VGPU': '1', 'hw:x': y}}")
    for arguments in (
        ["--flavor-file", str(file)],
        ["--flavor", "vcpus=2", "ram=512", "resources_GPU:VGPU=1"],
    ):
        shown = succeed(environment, "candidates", *arguments)
        assert "1 VGPU" in shown
        assert "512 MEMORY_MB" in shown


def test_flavor_with_numbered_expressions_is_accepted(environment):
    words = ["--flavor", "vcpus=1", "resources_GPU:VGPU=1", "where_GPU:1=exists driver and ecc"]
    shown = succeed(environment, "explain", *words)
    assert "where expression=exists driver and ecc" in shown
    assert "has none of these attributes" in shown
    result = call(environment, "candidates", "resources=VCPU:1", "where=mem_gib >=")
    assert result.returncode == 1
    assert "column 11" in result.stderr


@pytest.mark.slow
def test_explain_shows_funnel_nearest_trees_and_advice(environment):
    shown = succeed(
        environment,
        "explain",
        "resources_GPU=VGPU:1",
        "resources_FPGA=FPGA:1",
        "required_NUMA=HW_NUMA_ROOT",
        "same_subtree=_NUMA,_GPU,_FPGA",
    )
    assert "None of" in shown
    assert "same_subtree groups=" in shown
    assert "█" in shown
    assert "host-1" in shown
    assert "→ Without same_subtree=" in shown
    document = json.loads(succeed(environment, "explain", "resources=VGPU:100", "-f", "json"))
    assert document["feasible"] is False


@pytest.mark.slow
def test_claimed_amounts_are_used_until_released(environment):
    consumer = claim(environment, "resources=VGPU:2", "--number", "2")
    assert re.fullmatch("[0-9a-f-]{36}", consumer)
    tree = succeed(environment, "tree", "host-2")
    assert re.search(r"VGPU █+░+ 2/7", tree)
    assert "HW_NUMA_ROOT" in tree
    assert "host-1" not in tree
    succeed(environment, "release", consumer)
    again = call(environment, "release", consumer)
    assert (again.returncode, "has no allocations" in again.stderr) == (0, True)
    assert re.search(r"VGPU ░+ 0/7", succeed(environment, "tree"))


@pytest.mark.parametrize(
    "query",
    [
        ["?resources=VCPU:1&resources_GPU=VGPU:1&limit=1"],
        ["resources=VCPU:1&resources_GPU=VGPU:1&limit=1"],
        ["resources=VCPU:1", "--limit", "1", "resources_GPU=VGPU:1"],
        ["--limit", "1", "resources=VCPU:1", "resources_GPU=VGPU:1"],
    ],
)
def test_printed_query_can_be_pasted_as_arguments(environment, query):
    shown = succeed(environment, "candidates", *query)
    printed = shown.splitlines()[-1].split()
    assert printed == ["resources=VCPU:1", "resources_GPU=VGPU:1", "limit=1"]
    assert succeed(environment, "candidates", *printed) == shown
    assert "feasible" in succeed(environment, "explain", *printed[:2], "-f", "json")
    where = succeed(
        environment, "explain", "resources=VGPU:1", "where=mem_gib >= 80 and ecc", "-f", "json"
    )
    assert (
        succeed(
            environment,
            "explain",
            "?resources=VGPU:1&where=mem_gib%20%3E%3D%2080%20and%20ecc",
            "-f",
            "json",
        )
        == where
    )


def test_a_tree_is_named_by_any_of_its_providers(environment):
    whole = succeed(environment, "tree", "host-1")
    (uuid,) = re.findall(r"host-1_numa0 ([0-9a-f-]{36})", whole)
    assert succeed(environment, "tree", uuid) == whole
    assert "host-2" not in whole


def test_os_variables_name_a_cloud(environment):
    elsewhere = environment | {
        "OS_AUTH_URL": "http://127.0.0.1:9/v3",
        "OS_USERNAME": "somebody",
        "OS_PASSWORD": "secret",
        "OS_PROJECT_NAME": "admin",
    }
    del elsewhere["TREECLAIM_ENDPOINT"]
    refused = call(elsewhere, "tree")
    assert refused.returncode == 1
    assert "127.0.0.1" in refused.stderr
    assert "Traceback" not in refused.stderr
