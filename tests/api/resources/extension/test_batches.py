# SPDX-License-Identifier: Apache-2.0
"""Applying in bulk (contract page 99, section 8)."""

import itertools
import random

import pytest

from tests.api.resources.extension.clouds import (
    AGGREGATES,
    CLASSES,
    TRAITS,
    cloud_on,
    uuid_of,
)
from tests.api.resources.extension.test_pages_and_writers import busy
from tests.databases import EACH_DATABASE

PATH = "/treeclaim/providers"
PARTS = {"include": "inventories,traits,aggregates"}
NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=EACH_DATABASE)
def shared_cloud(request, tmp_path_factory):
    with cloud_on(request.param, tmp_path_factory.mktemp("cloud")) as cloud:
        cloud.client.put("/traits/CUSTOM_BLUE")
        yield cloud


@pytest.fixture
def cloud(shared_cloud):
    """A cloud without providers."""
    left = shared_cloud.ask(PATH)["providers"]
    while left:
        left = [
            one
            for one in left
            if shared_cloud.client.delete(f"/resource_providers/{one['uuid']}").status_code == 409
        ]
    return shared_cloud


def applied(cloud, *entries):
    return cloud.post(PATH, {"providers": list(entries)})["providers"]


def listed(cloud):
    return cloud.ask(PATH, **PARTS)["providers"]


def amounts(**given):
    return {
        "total": 1,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 2147483647,
        "step_size": 1,
        "allocation_ratio": 1.0,
        "consumes": [],
    } | given


@pytest.mark.parametrize("seed", range(6))
def test_read_edit_and_apply_round_trips(cloud, seed):
    """For random worlds and random edits: reading, editing and applying gives what was meant."""
    choice = random.Random(seed)
    cloud.random = choice
    cloud.fill(trees=3, consumers=0)
    for _ in range(4):
        wanted = listed(cloud)
        for one in wanted:
            edit(choice, one, wanted)
        answer = applied(cloud, *choice.sample(wanted, len(wanted)))
        results = {one["uuid"]: one for one in answer}
        for one in wanted:
            one["generation"] = results[one["uuid"]]["generation"]
        shown = listed(cloud)
        for one in (*wanted, *shown):
            del one["root_provider_uuid"]
            one["traits"].sort()
        assert shown == wanted
        again = applied(cloud, *shown)
        assert {one["result"] for one in again} == {"unchanged"}


def edit(choice, one, every):
    """Change something about a provider, or nothing."""
    match choice.randrange(6):
        case 0:
            one["traits"] = choice.sample(TRAITS, choice.randrange(3))
        case 1:
            one["aggregates"] = sorted(choice.sample(AGGREGATES, choice.randrange(3)))
        case 2:
            some = choice.sample(CLASSES, choice.randrange(3))
            one["inventories"] = {
                name: amounts(total=choice.randrange(1, 9)) for name in CLASSES if name in some
            }
        case 3:
            one["name"] = f"renamed-{next(NUMBERS)}"
        case 4 if not any(other["parent_provider_uuid"] == one["uuid"] for other in every):
            roots = [
                other["uuid"]
                for other in every
                if other["parent_provider_uuid"] is None and other is not one
            ]
            one["parent_provider_uuid"] = choice.choice([None, *roots])


def test_batch_is_atomic_for_readers(cloud):
    names = [f"host-{number}" for number in range(20)]

    def flip(step):
        entries = (
            {"uuid": uuid_of(name), "name": name, "traits": [TRAITS[step % 2]]} for name in names
        )
        applied(cloud, *entries)

    flip(0)
    with busy(flip):
        for _ in range(40):
            shown = {tuple(one["traits"]) for one in listed(cloud)}
            assert len(shown) == 1
