# SPDX-License-Identifier: Apache-2.0
"""The largest mix and the largest number of mixes (contract page 101, section 2)."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.databases import EACH_DATABASE
from tests.service import application_on, client_of, fresh_database_on
from treeclaim.model.extension.errors import MixesFullError
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations import mixes
from treeclaim.store.schema.tables import MOST_MIXES

EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
SMALL = {"query": "resources=VCPU:1", "weight": 1}


@pytest.fixture(params=EACH_DATABASE)
def client(request, tmp_path):
    """A client of a service without any mix."""
    with application_on(request.param, tmp_path) as application:
        yield client_of(application, **EXTENDED)


def put(client, name, requests, status=204):
    answer = client.put(f"/treeclaim/mixes/{name}", json={"requests": requests})
    assert answer.status_code == status, answer.text
    return answer


def test_the_largest_mix_is_kept(client):
    query = "resources=VCPU:1&required=" + ",".join(["HW_CPU_X86_AVX2"] * 200)
    body = {str(number): {"query": query, "weight": 9} for number in range(64)}
    assert 200_000 < len(json.dumps({"requests": body})) < 262_144
    put(client, "day", body)
    assert client.get("/treeclaim/mixes/day").json() == {"requests": body}


def test_number_of_mixes_is_limited_to_64(client):
    for number in range(MOST_MIXES):
        put(client, f"mix-{number}", {"a": SMALL})
    answer = put(client, "more", {"a": SMALL}, 409)
    assert answer.json()["errors"][0]["code"] == "treeclaim.mixes"
    put(client, "mix-5", {"b": SMALL})
    assert client.delete("/treeclaim/mixes/mix-9").status_code == 204
    put(client, "more", {"a": SMALL})
    assert MOST_MIXES == 64 == len(client.get("/treeclaim/mixes").json()["mixes"])


@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_concurrent_creations_respect_the_limit_of_mixes(kind, tmp_path):
    with (
        fresh_database_on(kind, tmp_path) as url,
        closing(Store(DatabaseSettings(url))) as one,
        closing(Store(DatabaseSettings(url))) as other,
    ):
        for number in range(MOST_MIXES - 4):
            one.write(mixes.put, f"mix-{number}", {})

        def attempt(number):
            try:
                (one, other)[number % 2].write(mixes.put, f"late-{number}", {})
            except MixesFullError:
                return False
            return True

        with ThreadPoolExecutor(12) as threads:
            result = list(threads.map(attempt, range(12)))
        assert result.count(True) == 4
        kept = one.read(mixes.load_mixes)
        assert len(kept) == MOST_MIXES
        assert {f"late-{number}" for number in range(12) if result[number]} < kept.keys()
