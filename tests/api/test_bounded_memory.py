# SPDX-License-Identifier: Apache-2.0
"""Everything that is remembered of requests has a bound in bytes."""

import gc
import tracemalloc

import pytest

from tests.api.raw import send
from tests.service import make_application

MOST_BYTES = 3_000_000
"""Bytes that requests may leave behind once all caches are full; they send four times as many."""

ROUNDS = 60
LENGTH = 200_000


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    return make_application(tmp_path_factory.mktemp("memory"))


def distinct(number, length=LENGTH):
    """A text that no other request has."""
    return f"{number:08}".ljust(length, "x")


REQUESTS = {
    "roles": lambda n: {"http_x_roles": distinct(n)},
    "many roles": lambda n: {"http_x_roles": f"r{n}," + "ab," * 5_000},
    "token": lambda n: {"http_x_auth_token": distinct(n), "http_x_roles": None},
    "project": lambda n: {"http_x_project_id": distinct(n)},
    "domain": lambda n: {"http_x_user_domain_id": distinct(n), "http_x_roles": "nobody"},
    "scope": lambda n: {"http_openstack_system_scope": distinct(n)},
    "project asked for": lambda n: {
        "path": "/usages",
        "query": b"project_id=" + distinct(n).encode(),
        "http_x_roles": "nobody",
    },
    "accept": lambda n: {"http_accept": f"a/b;c={distinct(n)}"},
    "version": lambda n: {"http_openstack_api_version": f"placement {distinct(n)}"},
    "service": lambda n: {"http_openstack_api_version": f"{distinct(n)} 1.1,placement 1.1"},
    "prefix": lambda n: {"script_name": f"/{distinct(n)}"},
    "question": lambda n: {
        "path": "/allocation_candidates",
        "query": b"resources=VCPU:1&in_treeA=" + distinct(n).encode(),
    },
    "why": lambda n: {
        "path": "/allocation_candidates/explain",
        "query": b"resources=VCPU:1&tree=" + distinct(n).encode(),
        "http_openstack_api_version": "placement 1.39, treeclaim 1.0",
    },
    "path": lambda n: {"path": f"/traits/{distinct(n)}"},
    "nowhere": lambda n: {"path": f"/{distinct(n)}"},
    "method": lambda n: {"method": distinct(n)},
    "request id": lambda n: {"http_x_openstack_request_id": distinct(n)},
    "media type": lambda n: {"content_type": distinct(n), "content_length": "2"},
}


QUICK = ("many roles", "question", "why", "nowhere")
"""What is remembered in four ways; the other texts go the same ways, and run with all databases."""


KINDS = [
    kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in REQUESTS
]


@pytest.mark.parametrize("kind", KINDS)
def test_long_texts_are_not_cached(application, kind):
    def ask(numbers):
        for number in numbers:
            named = {"method": "GET", "path": "/resource_providers"} | REQUESTS[kind](number)
            answer = send(application, named.pop("method"), named.pop("path"), **named)
            assert answer.status < 500

    ask(range(5))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        ask(range(1000, 1000 + ROUNDS))
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < MOST_BYTES


@pytest.mark.slow
def test_cache_of_short_texts_is_bounded(application):
    def ask(numbers):
        for number in numbers:
            text = distinct(number, 900)
            send(
                application,
                "GET",
                "/usages",
                query=f"project_id={text}".encode(),
                http_x_roles="x",
            )

    ask(range(2_100))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        ask(range(10_000, 12_500))
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # New entries evict earlier ones.
    assert grown < MOST_BYTES
