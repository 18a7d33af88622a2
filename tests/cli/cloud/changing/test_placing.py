# SPDX-License-Identifier: Apache-2.0
"""`place`, `fit` and `candidates --order-by` as a person runs them."""

import json

import pytest

from tests.cli.processes import call


@pytest.mark.parametrize(
    "option", [["place", "--spread"], ["place", "--together"], ["fit", "--domains"]]
)
@pytest.mark.parametrize("racks", ["racks", "rack-1,rack-9", "shelf-{n}", "rack-1,"])
def test_unknown_aggregate_name_is_refused_with_valid_names(environment, option, racks):
    command, name = option
    result = call(environment, command, "resources=VCPU:1", name, racks)
    assert result.returncode == 1
    assert f"no provider is in an aggregate {racks.removeprefix('rack-1,')!r}" in result.stderr
    assert "rack-1,rack-2" in result.stderr


def test_fit_shows_counts_for_several_flavors(environment, tmp_path):
    file = tmp_path / "flavors.yaml"
    file.write_text("{tiny: {vcpus: 1}, gpu: {extra_specs: {'resources:VGPU': '1'}}}")
    result = call(environment, "fit", "--flavors", str(file), "--domains", "tree")
    assert result.returncode == 0, result.stderr
    assert "tiny" in result.stdout
    assert "host-1: " in result.stdout
    result = call(environment, "fit", "resources=VGPU:1", "-f", "json")
    capacity = json.loads(result.stdout)["request"]
    assert 0 < capacity["fits"] <= capacity["at_most"] <= capacity["when_empty"]
