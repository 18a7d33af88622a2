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
    uuids = [provider["uuid"] for provider in shared_cloud.ask(PATH)["providers"]]
    while uuids:
        uuids = [
            uuid
            for uuid in uuids
            if shared_cloud.client.delete(f"/resource_providers/{uuid}").status_code == 409
        ]
    return shared_cloud


def applied(cloud, *entries):
    return cloud.post(PATH, {"providers": list(entries)})["providers"]


def listed(cloud):
    return cloud.ask(PATH, **PARTS)["providers"]


def amounts(**fields):
    return {
        "total": 1,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 2147483647,
        "step_size": 1,
        "allocation_ratio": 1.0,
        "consumes": [],
    } | fields


@pytest.mark.parametrize("seed", range(6))
def test_read_edit_and_apply_round_trips(cloud, seed):
    """For random worlds and random edits: reading, editing and applying gives the edited world."""
    choice = random.Random(seed)
    cloud.random = choice
    cloud.fill(trees=3, consumers=0)
    for _ in range(4):
        wanted = listed(cloud)
        for provider in wanted:
            edit(choice, provider, wanted)
        answer = applied(cloud, *choice.sample(wanted, len(wanted)))
        results = {result["uuid"]: result for result in answer}
        for provider in wanted:
            provider["generation"] = results[provider["uuid"]]["generation"]
        shown = listed(cloud)
        for provider in (*wanted, *shown):
            del provider["root_provider_uuid"]
            provider["traits"].sort()
        assert shown == wanted
        again = applied(cloud, *shown)
        assert {result["result"] for result in again} == {"unchanged"}


def edit(choice, provider, providers):
    """Change a part of a provider, or nothing."""
    match choice.randrange(6):
        case 0:
            provider["traits"] = choice.sample(TRAITS, choice.randrange(3))
        case 1:
            provider["aggregates"] = sorted(choice.sample(AGGREGATES, choice.randrange(3)))
        case 2:
            stocked = choice.sample(CLASSES, choice.randrange(3))
            provider["inventories"] = {
                name: amounts(total=choice.randrange(1, 9)) for name in CLASSES if name in stocked
            }
        case 3:
            provider["name"] = f"renamed-{next(NUMBERS)}"
        case 4 if not any(
            candidate["parent_provider_uuid"] == provider["uuid"] for candidate in providers
        ):
            roots = [
                candidate["uuid"]
                for candidate in providers
                if candidate["parent_provider_uuid"] is None and candidate is not provider
            ]
            provider["parent_provider_uuid"] = choice.choice([None, *roots])


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
            shown = {tuple(provider["traits"]) for provider in listed(cloud)}
            assert len(shown) == 1
