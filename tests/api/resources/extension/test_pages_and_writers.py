# SPDX-License-Identifier: Apache-2.0
"""Each page shows one moment; pages read during writes miss and repeat nothing."""

import threading
from contextlib import contextmanager

import pytest

from tests.api.resources.extension.clouds import TRAITS, cloud_on, uuid_of
from tests.databases import EACH_DATABASE

PATH = "/treeclaim/providers"

LONGEST_STEP = 120
"""Seconds that a step of a writer may take on a busy machine."""


@contextmanager
def busy(*works):
    """Repeat work in threads until the block ends; what fails in them fails here.

    The block begins when each has worked once: on a quick machine it would be over before.
    """
    is_over = threading.Event()
    failures = []

    def run(work, begun):
        step = 0
        try:
            while not is_over.is_set():
                work(step)
                step += 1
                begun.set()
        except Exception as error:  # noqa: BLE001 - told below
            failures.append(error)
            begun.set()

    begun = [threading.Event() for _ in works]
    threads = [threading.Thread(target=run, args=pair) for pair in zip(works, begun, strict=True)]
    for thread in threads:
        thread.start()
    try:
        assert all(event.wait(LONGEST_STEP) for event in begun)
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert not failures


@pytest.fixture(params=EACH_DATABASE)
def cloud(request, tmp_path):
    with cloud_on(request.param, tmp_path) as cloud:
        yield cloud.fill(trees=8, consumers=10)


@pytest.mark.slow
def test_pages_miss_and_repeat_no_lasting_provider_under_writes(cloud):
    client = cloud.client
    settled = [provider["uuid"] for provider in cloud.ask(PATH)["providers"]]
    movable = [uuid for uuid in settled if uuid != uuid_of("host-0")]
    hosts = [uuid_of("host-0"), None]

    def move(step):
        provider = movable[step % len(movable)]
        shown = client.get(f"/resource_providers/{provider}").json()
        body = {
            "name": f"moved-{step}-{provider[:8]}",
            "parent_provider_uuid": hosts[step % 2],
        }
        assert client.put(f"/resource_providers/{provider}", json=body).status_code in {200, 400}
        body = {
            "traits": [TRAITS[step % 3]],
            "resource_provider_generation": shown["generation"],
        }
        client.put(f"/resource_providers/{provider}/traits", json=body)

    def come_and_go(step):
        uuid = uuid_of(f"passing {step}")
        body = {"name": f"passing-{step}", "uuid": uuid}
        assert client.post("/resource_providers", json=body).is_success
        assert client.delete(f"/resource_providers/{uuid}").is_success

    with busy(move, come_and_go):
        for limit in (1, 2, 3, 5, 8):
            pages = cloud.pages(PATH, "providers", limit=limit)
            listed = [provider["uuid"] for page in pages for provider in page]
            assert [uuid for uuid in listed if uuid in settled] == settled


@pytest.mark.slow
def test_page_with_allocations_shows_one_snapshot(cloud):
    """On each page, the usage of a provider is the sum of its consumers' allocations."""
    claiming = [uuid_of(f"busy {number}") for number in range(4)]

    def claim(step):
        consumer = claiming[step % 4]
        held = cloud.client.get(f"/allocations/{consumer}").json()
        cloud.claim(consumer, held.get("consumer_generation"))

    parameters = {"include": "usages,allocations"}
    with busy(claim):
        for _ in range(25):
            answer = cloud.client.get(PATH, params=parameters)
            assert answer.status_code == 200, answer.text
            for provider in answer.json()["providers"]:
                held = dict.fromkeys(provider["usages"], 0)
                for share in provider["allocations"].values():
                    for name, amount in share["resources"].items():
                        held[name] += amount
                assert held == provider["usages"]
