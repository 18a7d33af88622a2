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
    done = call(environment, *command)
    assert done.returncode == 0, done.stderr
    assert all(consumer in done.stdout for consumer in consumers)
    assert "2 placed" in done.stdout
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
    done = call(environment, *command, "-f", "json")
    document = json.loads(done.stdout)
    roots = [row["root_providers"][0]["uuid"] for row in document["placements"]]
    assert len(roots) == len(set(roots)) > 0
    assert all(row["consumer_generation"] is None for row in document["placements"])
    assert done.returncode == (1 if document["unplaced"] else 0)


def test_place_without_room_fails_and_suggests_explain(environment):
    done = call(environment, "place", "resources=VCPU:100000")
    assert done.returncode == 1
    assert "There is no place for the requested consumers (1)" in done.stderr
    assert "treeclaim explain resources=VCPU:100000" in done.stderr
    consumer = str(uuid.uuid4())
    done = call(environment, "place", "resources=VCPU:100000", "--consumer", consumer)
    assert consumer in done.stderr


@pytest.mark.parametrize("racks", ["rack-1,rack-2", "rack-{n}", "rack-2, rack-{n}"])
def test_consumers_are_spread_over_racks_by_their_names_in_the_topology(environment, racks):
    command = ["place", "resources=VCPU:1", "--amount", "4", "--dry-run", "-f", "json"]
    done = call(environment, *command, "--spread", racks)
    assert done.returncode == 0, done.stderr
    hosts = [row["root_providers"][0]["name"] for row in json.loads(done.stdout)["placements"]]
    assert sorted(name.partition("-")[0] for name in hosts) == ["edge", "edge", "host", "host"]
    together = call(environment, *command, "--together", racks)
    hosts = [row["root_providers"][0]["name"] for row in json.loads(together.stdout)["placements"]]
    assert len({name.partition("-")[0] for name in hosts}) == 1


def test_fit_accepts_domains_by_rack_name(environment):
    done = call(environment, "fit", "resources=VCPU:1", "--domains", "rack-{n}", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["request"]["domains"]) == 2


@pytest.mark.parametrize(
    "option", [["place", "--spread"], ["place", "--together"], ["fit", "--domains"]]
)
@pytest.mark.parametrize("racks", ["racks", "rack-1,rack-9", "shelf-{n}", "rack-1,"])
def test_unknown_aggregate_name_is_refused_with_valid_names(environment, option, racks):
    command, name = option
    done = call(environment, command, "resources=VCPU:1", name, racks)
    assert done.returncode == 1
    assert f"no provider is in an aggregate {racks.removeprefix('rack-1,')!r}" in done.stderr
    assert "rack-1,rack-2" in done.stderr


def test_fit_shows_counts_for_several_flavors(environment, tmp_path):
    file = tmp_path / "flavors.yaml"
    file.write_text("{tiny: {vcpus: 1}, gpu: {extra_specs: {'resources:VGPU': '1'}}}")
    done = call(environment, "fit", "--flavors", str(file), "--domains", "tree")
    assert done.returncode == 0, done.stderr
    assert "tiny" in done.stdout
    assert "gpu by domain" in done.stdout
    done = call(environment, "fit", "resources=VGPU:1", "-f", "json")
    capacity = json.loads(done.stdout)["request"]
    assert 0 < capacity["fits"] <= capacity["at_most"] <= capacity["when_empty"]


def test_candidates_can_be_ordered(environment):
    command = ["candidates", "resources=VGPU:1", "-f", "json", "--order-by", "pack"]
    done = call(environment, *command)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)["scores"]
    assert scores == sorted(scores, reverse=True)


def test_ordered_candidates_are_shown_with_their_scores(environment):
    plain = ["candidates", "resources=VGPU:1", "--order-by", "pack"]
    scores = json.loads(call(environment, *plain, "-f", "json").stdout)["scores"]
    shown = call(environment, *plain).stdout
    assert "Score" in shown
    assert all(str(round(score, 6)) in shown for score in scores)
    assert "Score" not in call(environment, "candidates", "resources=VGPU:1").stdout
