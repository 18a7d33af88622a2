# SPDX-License-Identifier: Apache-2.0
"""`--server-flavor`: a flavor of Nova becomes the query that Nova would send."""

import json

import pytest

from tests.cli.processes import call
from tests.cli.services import run_refused_command, run_service, run_successful_command
from tests.compute import compute_with, flavor_of, with_cloud
from tests.paths import EXAMPLE

FLAVORS = (
    flavor_of("tiny", 1, 512, 1),
    flavor_of("numa", 2, 1024, 0, extra_specs={"hw:numa_nodes": "2", "hw:cpu_policy": "shared"}),
    flavor_of("secret", 2, 1024, 0, public=False, extra_specs={"resources:VGPU": "1"}),
    flavor_of("broken", 1, 512, 1, extra_specs={"resources:VGPU": "many"}),
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A service with the example topology, and a cloud with flavors in Nova."""
    folder = tmp_path_factory.mktemp("service")
    with run_service(folder) as variables, compute_with(flavors=FLAVORS) as (_, url):
        run_successful_command(variables, "load", str(EXAMPLE))
        yield with_cloud(variables, folder, url)


def explain_query(environment, name, *options):
    """Return the query of a flavor in the output of `explain`."""
    shown = run_successful_command(environment, "explain", "--server-flavor", name, *options)
    return next(line for line in shown.splitlines() if "resources" in line)


def test_server_flavor_becomes_the_query_of_nova_with_a_warning(environment):
    enabled = "root_required=!COMPUTE_STATUS_DISABLED"
    assert explain_query(environment, "numa") == f"resources=VCPU:2,MEMORY_MB:1024 '{enabled}'"
    assert " in_tree=" in explain_query(environment, "numa", "in_tree=host-1")
    result = call(environment, "explain", "--server-flavor", "numa", "-f", "json")
    assert "hw:numa_nodes" in result.stderr
    assert "cpu_policy" not in result.stderr
    assert json.loads(result.stdout)["feasible"] is True


@pytest.mark.slow
def test_private_flavors_are_found_by_id_and_by_name(environment):
    assert "VGPU:1" in explain_query(environment, "id-of-secret")
    assert explain_query(environment, "secret") == explain_query(environment, "id-of-secret")


def test_unusable_server_flavor_is_refused_with_the_reason(environment, tmp_path):
    why = ["explain", "--server-flavor"]
    assert "no flavor 'huge'" in run_refused_command(environment, *why, "huge")
    assert "resources:VGPU" in run_refused_command(environment, *why, "broken")
    without = {name: value for name, value in environment.items() if name != "OS_CLOUD"}
    assert "--server-flavor needs a cloud" in run_refused_command(without, *why, "tiny")
    with compute_with(flavors=FLAVORS) as (_, url):
        elsewhere = with_cloud(environment, tmp_path, f"{url}/elsewhere")
        assert "does not list its flavors" in run_refused_command(elsewhere, *why, "tiny")


def test_placement_endpoint_override_of_clouds_yaml_is_used(environment, tmp_path):
    """`placement_endpoint_override`, as `compute_endpoint_override`, is what openstacksdk reads."""
    with compute_with(flavors=FLAVORS) as (_, url):
        placement = environment["TREECLAIM_ENDPOINT"]
        cloud = with_cloud(environment, tmp_path, url, placement_endpoint_override=placement)
        del cloud["TREECLAIM_ENDPOINT"]
        assert run_successful_command(cloud, "candidates", "--server-flavor", "numa", "-f", "json")


def test_unreadable_clouds_yaml_is_reported_by_each_command(environment, tmp_path):
    (tmp_path / "clouds.yaml").write_text("clouds: [")
    broken = environment | {"OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml")}
    for command in (("explain", "--server-flavor", "tiny"), ("tree", "--os-cloud", "nova")):
        assert "cloud nova: " in run_refused_command(broken | {"OS_CLOUD": "nova"}, *command)
