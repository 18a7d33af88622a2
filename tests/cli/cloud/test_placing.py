# SPDX-License-Identifier: Apache-2.0
"""`place`, `fit` and `candidates --order-by` as a person runs them."""

import json
import uuid

import pytest

from tests.cli.processes import call
from tests.cli.services import served
from tests.paths import EXAMPLE


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment of commands that talk to a service with the example topology."""
    folder = tmp_path_factory.mktemp("service")
    with served(folder) as environment:
        assert call(environment, "load", str(EXAMPLE)).returncode == 0
        yield environment


def test_consumers_are_placed_and_it_may_be_said_again(environment):
    consumers = [str(uuid.uuid4()) for _ in range(2)]
    command = ["place", "resources=VGPU:1", "--order-by", "spread", "--consumer", *consumers]
    done = call(environment, *command)
    assert done.returncode == 0, done.stderr
    assert all(consumer in done.stdout for consumer in consumers)
    assert "2 placed" in done.stdout
    again = call(environment, *command)
    assert again.returncode == 0, again.stderr
    assert "(was there)" in again.stdout


def test_a_dry_run_shows_where_they_would_be(environment):
    command = [
        "place",
        "resources=VCPU:1",
        "--count",
        "3",
        "--most",
        "1",
        "--dry-run",
        "--partial",
    ]
    done = call(environment, *command, "--json")
    document = json.loads(done.stdout)
    roots = [one["root_providers"][0]["uuid"] for one in document["placements"]]
    assert len(roots) == len(set(roots)) > 0
    assert all(one["consumer_generation"] is None for one in document["placements"])
    assert done.returncode == (1 if document["unplaced"] else 0)


def test_what_has_no_place_fails_and_says_so(environment):
    done = call(environment, "place", "resources=VCPU:100000")
    assert done.returncode == 1
    assert "There is no place" in done.stderr
    done = call(environment, "place", "resources=VCPU:1", "--spread", "racks")
    assert done.returncode == 1
    assert "aggregates" in done.stderr


def test_how_many_fit_is_shown_for_several_flavors(environment, tmp_path):
    file = tmp_path / "flavors.yaml"
    file.write_text("{tiny: {vcpus: 1}, gpu: {extra_specs: {'resources:VGPU': '1'}}}")
    done = call(environment, "fit", "--flavors", str(file), "--by", "tree")
    assert done.returncode == 0, done.stderr
    assert "tiny" in done.stdout
    assert "gpu by part" in done.stdout
    done = call(environment, "fit", "resources=VGPU:1", "--json")
    found = json.loads(done.stdout)["request"]
    assert 0 < found["fits"] <= found["at_most"] <= found["when_empty"]


def test_candidates_can_be_ordered(environment):
    command = ["candidates", "resources=VGPU:1", "--json", "--order-by", "pack"]
    done = call(environment, *command)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)["scores"]
    assert scores == sorted(scores, reverse=True)


def test_ordered_candidates_are_shown_with_their_scores(environment):
    plain = ["candidates", "resources=VGPU:1", "--order-by", "pack"]
    scores = json.loads(call(environment, *plain, "--json").stdout)["scores"]
    shown = call(environment, *plain).stdout
    assert "score" in shown
    assert all(f"{score:.6f}" in shown for score in scores)
    assert "score" not in call(environment, "candidates", "resources=VGPU:1").stdout
