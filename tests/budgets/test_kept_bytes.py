# SPDX-License-Identifier: Apache-2.0
"""Bytes that the service keeps of requests, that a search holds, and that the worst questions take."""

import gc
import json
from multiprocessing import get_context

import pytest

from tests.api.raw import send
from tests.budgets import rows_with, traced_memory, worst_questions
from tests.forest.building import MeasuringBudget, forest_of, record
from tests.service import make_application
from treeclaim.forest.placing.capacity import CapacityLimits
from treeclaim.forest.placing.placer import ConsumerPlacer
from treeclaim.model.extension.placing import PlacingCall, PlacingRequest
from treeclaim.model.request import CandidateRequest, RequestGroup
from treeclaim.replica.questions import capacity_question

EXTENDED = "placement 1.39, treeclaim 1.0"
FEW, SHORT = (5, 60), (2_100, 2_500)
"""Requests that fill all caches, and those that are measured: of long texts, and of short ones."""


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    return make_application(tmp_path_factory.mktemp("memory"))


def distinct(number, length=200_000):
    """A text that no other request has."""
    return f"{number:08}".ljust(length, "x")


def usages(project):
    return {
        "path": "/usages",
        "query": f"project_id={project}".encode(),
        "http_x_roles": "nobody",
    }


REQUESTS = {
    "long roles": lambda n: {"http_x_roles": distinct(n)},
    "many roles": lambda n: {"http_x_roles": f"r{n}," + "ab," * 5_000},
    "long token": lambda n: {"http_x_auth_token": distinct(n), "http_x_roles": None},
    "long project": lambda n: {"http_x_project_id": distinct(n)},
    "long domain": lambda n: {"http_x_user_domain_id": distinct(n), "http_x_roles": "nobody"},
    "long scope": lambda n: {"http_openstack_system_scope": distinct(n)},
    "long project asked for": lambda n: usages(distinct(n)),
    "long media range": lambda n: {"http_accept": f"a/b;c={distinct(n)}"},
    "long version": lambda n: {"http_openstack_api_version": f"placement {distinct(n)}"},
    "long name of a service": lambda n: {
        "http_openstack_api_version": f"{distinct(n)} 1.1,placement 1.1"
    },
    "long prefix": lambda n: {"script_name": f"/{distinct(n)}"},
    "long query": lambda n: {
        "path": "/allocation_candidates",
        "query": b"resources=VCPU:1&in_treeA=" + distinct(n).encode(),
    },
    "long query to explain": lambda n: {
        "path": "/allocation_candidates/explain",
        "query": b"resources=VCPU:1&tree=" + distinct(n).encode(),
        "http_openstack_api_version": EXTENDED,
    },
    "long path": lambda n: {"path": f"/traits/{distinct(n)}"},
    "long path of nothing": lambda n: {"path": f"/{distinct(n)}"},
    "long method": lambda n: {"method": distinct(n)},
    "long request id": lambda n: {"http_x_openstack_request_id": distinct(n)},
    "long media type": lambda n: {"content_type": distinct(n), "content_length": "2"},
    "many short texts": lambda n: usages(distinct(n, 900)),
}


@rows_with("kept")
def test_requests_leave_few_bytes_behind(application, name, most):
    def send_some(numbers):
        for number in numbers:
            request = {"method": "GET", "path": "/resource_providers"} | REQUESTS[name](number)
            answer = send(application, request.pop("method"), request.pop("path"), **request)
            assert answer.status < 500

    filling, measured = SHORT if "short" in name else FEW
    send_some(range(filling))
    with traced_memory() as measure:
        send_some(range(10_000, 10_000 + measured))
        gc.collect()
        kept, _ = measure()
    assert kept < most


def hosts(count, cells, amounts):
    """A Forest of hosts with cells that have an amount of each class, more of it on each further host."""
    records = []
    for host in range(count):
        root = 10 * host + 1
        records.append(record(root, inventories={"DISK_GB": 1}))
        records += [
            record(root + cell, root, root, {name: room + host * growth for name, (room, growth) in amounts.items()})
            for cell in range(1, cells + 1)
        ]  # fmt: skip
    return forest_of(records)


TWO_CELLS = CandidateRequest(
    (RequestGroup("_A", {"MEMORY_MB": 1}), RequestGroup("_B", {"MEMORY_MB": 1}))
)
"""Either cell of a host can serve each group, so each consumer is searched for."""


def place(count):
    """The bytes that are held to place consumers."""
    consumers = tuple(f"c{number}" for number in range(count))
    call = PlacingCall((PlacingRequest((TWO_CELLS,), consumers, "p", "u", "t"),), ())
    budget = MeasuringBudget()
    attempt = ConsumerPlacer(hosts(20, 2, {"MEMORY_MB": (8, 0)}), call, {}, budget).place_all()
    assert not attempt.unplaced
    return budget.most_held


def count_room(room):
    """The bytes that are held to count how many consumers fit where each host has room for so many."""
    forest = hosts(20, 2, {"MEMORY_MB": (room, 0)})
    return count_capacity(forest, {"all": TWO_CELLS}, 20 * room)


def count_requests(number):
    """The bytes that are held to count how many consumers fit, for so many requests; no two trees are alike."""
    forest = hosts(30, 2, {"VCPU": (5, 1), "MEMORY_MB": (8, 2)})
    requests = {
        str(amount): CandidateRequest((RequestGroup("", {"VCPU": amount, "MEMORY_MB": 1}),))
        for amount in range(1, number + 1)
    }
    return count_capacity(forest, requests)


def count_capacity(forest, requests, fits=None):
    budget = MeasuringBudget()
    question = capacity_question(requests, CapacityLimits(None, 1))
    capacity = json.loads(b"".join(map(bytes, question.work(forest, iter(()), budget))))[
        "capacity"
    ]
    assert fits is None or capacity["all"]["fits"] == fits
    return budget.most_held


GROWTH = {
    "placing more consumers": (place, 2, 50),
    "counting in larger rooms": (count_room, 8, 80),
    "counting for more requests": (count_requests, 1, 5),
}


@rows_with("growth")
def test_memory_of_a_search_does_not_grow_with_its_repetitions(name, most):
    measure, small, large = GROWTH[name]
    assert measure(large) <= most * measure(small)


@pytest.mark.slow
@rows_with("peak")
def test_worst_questions_stay_below_a_gigabyte_and_check_their_budget_often(name, most):
    with get_context("spawn").Pool(1) as pool:
        megabytes, seconds = pool.apply_async(worst_questions.measure, (name,)).get(240)
    assert megabytes < most[0]
    assert seconds < most[1]
