# SPDX-License-Identifier: Apache-2.0
"""Copies of some trees, by list and watch, equal a full read, whatever moves in or out."""

import json
import random
import threading

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.api.resources.extension.watchers import SECONDS, place_on
from tests.databases import EACH_DATABASE
from tests.servers import eventually
from treeclaim.client import Client, follow
from treeclaim.client import watching as client_watching

NAMES = [f"provider {number}" for number in range(8)]
WATCHED = [
    ["provider 0"],
    ["provider 1"],
    ["provider 5"],
    ["provider 2", "provider 6"],
    ["nobody", "provider 7"],
]


@pytest.fixture(scope="module", params=EACH_DATABASE)
def place(request, tmp_path_factory):
    """A service with watchers, on each database."""
    with place_on(request.param, tmp_path_factory.mktemp("trees")) as place:
        yield place


class Cloud:
    """Some providers that are made, moved, changed and deleted at random."""

    def __init__(self, place, seed):
        """Make the first ones."""
        self._place = place
        self._random = random.Random(seed)
        for name in NAMES[:6]:
            self.write(name, 1)

    def act(self):
        """Do one thing; what the service refuses is left."""
        name = self._random.choice(NAMES)
        self.write(name, self._random.randrange(8))

    def write(self, name, what):
        """Delete, change or move a provider; make it if it is not there."""
        http, path = self._place.http, f"/resource_providers/{uuid_of(name)}"
        shown = http.get(path)
        parent = self._random.choice([None, *map(uuid_of, NAMES)])
        if shown.status_code == 404:
            body = {"name": name, "uuid": uuid_of(name), "parent_provider_uuid": parent}
            http.post("/resource_providers", json=body)
        elif what == 0:
            http.delete(path)
        elif what == 1:
            self._place.stock(uuid_of(name), self._random.randrange(1, 100))
        else:
            http.put(path, json={"name": name, "parent_provider_uuid": parent})


def read_fully(client, named):
    """All providers of some trees, by uuid."""
    filters = {"in_tree": f"in:{','.join(map(uuid_of, named))}"}
    return client_watching._list_all(client, filters)[0]


@pytest.mark.slow
def test_followed_tree_copies_equal_a_full_read(place):
    cloud = Cloud(place, 7)
    latest, is_over = {}, threading.Event()

    def keep(number):
        with Client(str(place.http.base_url), token="admin") as client:
            trees = [uuid_of(name) for name in WATCHED[number]]
            for providers in follow(client, in_tree=trees):
                latest[number] = json.dumps(providers, sort_keys=True)
                if is_over.is_set():
                    return

    threads = [
        threading.Thread(target=keep, args=(number,), daemon=True)
        for number in range(len(WATCHED))
    ]
    for thread in threads:
        thread.start()
    eventually(lambda: len(latest) == len(WATCHED), "all have listed", SECONDS)
    with Client(str(place.http.base_url), token="admin") as client:
        for _ in range(4):
            for _ in range(8):
                cloud.act()
            for number, named in enumerate(WATCHED):
                expected = json.dumps(read_fully(client, named), sort_keys=True)
                eventually(
                    lambda number=number, expected=expected: latest[number] == expected,
                    "an equal copy",
                    SECONDS,
                )
        is_over.set()
        for name in NAMES:
            cloud.write(name, 1)
    for thread in threads:
        thread.join(SECONDS)
