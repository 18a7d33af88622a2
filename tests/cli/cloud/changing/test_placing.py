# SPDX-License-Identifier: Apache-2.0
"""`place`, `fit` and `candidates --order-by` as a person runs them."""

import json

import pytest

from tests.cli.services import refused, succeed


@pytest.mark.parametrize(
    "option", [["place", "--spread"], ["place", "--together"], ["fit", "--domains"]]
)
@pytest.mark.parametrize("racks", ["racks", "rack-1,rack-9", "shelf-{n}", "rack-1,"])
def test_unknown_aggregate_name_is_refused_with_valid_names(environment, option, racks):
    command, name = option
    message = refused(environment, command, "resources=VCPU:1", name, racks)
    assert f"no provider is in an aggregate {racks.removeprefix('rack-1,')!r}" in message
    assert "rack-1,rack-2" in message


def test_fit_shows_counts_for_several_flavors(environment, tmp_path):
    file = tmp_path / "flavors.yaml"
    file.write_text("{tiny: {vcpus: 1}, gpu: {extra_specs: {'resources:VGPU': '1'}}}")
    shown = succeed(environment, "fit", "--flavors", str(file), "--domains", "tree")
    assert "tiny" in shown
    assert "host-1: " in shown
    capacity = json.loads(succeed(environment, "fit", "resources=VGPU:1", "-f", "json"))["request"]
    assert 0 < capacity["fits"] <= capacity["at_most"] <= capacity["when_empty"]
