# SPDX-License-Identifier: Apache-2.0
"""`place`, `fit` and `candidates --order-by` as a person runs them."""

import json
import uuid

import pytest

from tests.cli.processes import call


@pytest.mark.slow
def test_place_is_idempotent_for_named_consumers(environment):
    consumers = [str(uuid.uuid4()) for _ in range(2)]
    for_consumers = [word for consumer in consumers for word in ("--consumer", consumer)]
    command = ["place", "resources=VGPU:1", "--order-by", "spread", *for_consumers]
    result = call(environment, *command)
    assert result.returncode == 0, result.stderr
    assert all(consumer in result.stdout for consumer in consumers)
    assert "2 placed" in result.stdout
    again = call(environment, *command)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("| True") == 2


def test_place_dry_run_shows_the_placements(environment):
    command = [
        "place",
        "resources=VCPU:1",
        "--amount",
        "3",
        "--most",
        "1",
        "--dry-run",
        "--partial",
    ]
    result = call(environment, *command, "-f", "json")
    document = json.loads(result.stdout)
    roots = [row["root_providers"][0]["uuid"] for row in document["placements"]]
    assert len(roots) == len(set(roots)) > 0
    assert all(row["consumer_generation"] is None for row in document["placements"])
    assert result.returncode == (1 if document["unplaced"] else 0)


def test_place_without_room_fails_and_suggests_explain(environment):
    result = call(environment, "place", "resources=VCPU:100000")
    assert result.returncode == 1
    assert "There is no place for the requested consumers (1)" in result.stderr
    assert "treeclaim explain resources=VCPU:100000" in result.stderr
    consumer = str(uuid.uuid4())
    result = call(environment, "place", "resources=VCPU:100000", "--consumer", consumer)
    assert consumer in result.stderr


@pytest.mark.parametrize("racks", ["rack-1,rack-2", "rack-{n}", "rack-2, rack-{n}"])
def test_consumers_are_spread_over_racks_by_their_names_in_the_topology(environment, racks):
    command = ["place", "resources=VCPU:1", "--amount", "4", "--dry-run", "-f", "json"]
    result = call(environment, *command, "--spread", racks)
    assert result.returncode == 0, result.stderr
    hosts = [row["root_providers"][0]["name"] for row in json.loads(result.stdout)["placements"]]
    assert sorted(name.partition("-")[0] for name in hosts) == ["edge", "edge", "host", "host"]
    together = call(environment, *command, "--together", racks)
    hosts = [row["root_providers"][0]["name"] for row in json.loads(together.stdout)["placements"]]
    assert len({name.partition("-")[0] for name in hosts}) == 1


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
    assert "gpu by domain" in result.stdout
    result = call(environment, "fit", "resources=VGPU:1", "-f", "json")
    capacity = json.loads(result.stdout)["request"]
    assert 0 < capacity["fits"] <= capacity["at_most"] <= capacity["when_empty"]


def test_ordered_candidates_are_shown_with_their_scores(environment):
    plain = ["candidates", "resources=VGPU:1", "--order-by", "pack"]
    scores = json.loads(call(environment, *plain, "-f", "json").stdout)["scores"]
    shown = call(environment, *plain).stdout
    assert "Score" in shown
    assert all(str(round(score, 6)) in shown for score in scores)
    assert "Score" not in call(environment, "candidates", "resources=VGPU:1").stdout
