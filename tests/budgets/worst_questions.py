# SPDX-License-Identifier: Apache-2.0
"""The worst known questions; each runs in a process of its own."""

from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.forest.building import MeasuringBudget, forest_of, provider_uuid, record, wide_trees
from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.search import search
from treeclaim.model.errors import SearchGivenUpError, SearchTooLargeError
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.provider import Inventory
from treeclaim.model.request import BodyForm, CandidateRequest, RequestGroup, SearchOptions

POOL = provider_uuid(99_999)
HOSTS = [record(n, None, None, {"VCPU": 8}, (), (POOL,)) for n in range(1, 301)]
POOLS = [
    record(n, None, None, {"DISK_GB": 900}, (SHARING_TRAIT,), (POOL,)) for n in range(301, 451)
]


def devices(amounts):
    """A group for each amount."""
    return tuple(
        RequestGroup(f"_{number}", {"CUSTOM_DEVICE": amount})
        for number, amount in enumerate(amounts)
    )


def children(inventories):
    """Return the records of a tree with children that have these inventories."""
    return [record(1), *(record(n, 1, 1, stock) for n, stock in enumerate(inventories, 2))]


def large_steps():
    steps = [100_003 + 2 * n * n for n in range(2, 42)]
    return [
        {"CUSTOM_DEVICE": Inventory(2**30, step_size=step, max_unit=2**30, min_unit=step)}
        for step in steps
    ]


def ask(records, groups, *, nested=True, randomize=False, breadth_first=False, **parameters):
    """A search for candidates."""
    request = CandidateRequest(tuple(groups), nested=nested, **parameters)
    options = SearchOptions(randomize=randomize, breadth_first=breadth_first)
    form = BodyForm(nested=nested)

    def work(forest, budget):
        for _ in search(forest, request, options, form, budget).pieces():
            pass

    return partial(work, forest_of(records))


def share(**parameters):
    """A search with groups for pools that 300 hosts share."""
    groups = [RequestGroup(f"_{n}", {"DISK_GB": 1}) for n in range(4)]
    return ask(HOSTS + POOLS, groups, **parameters)


def explain(records, groups):
    return partial(explain_request, forest_of(records), CandidateRequest(groups), Focus())


QUESTIONS = {
    "all candidates of sharing providers": share,
    "a limit below 1.29": lambda: share(nested=False, limit=1),
    "all below 1.29": lambda: share(nested=False),
    "a random order of all": lambda: share(randomize=True),
    "the trees in turn": lambda: share(breadth_first=True),
    "many groups on a wide tree": lambda: ask(wide_trees(2, 512), devices([1] * 512), limit=1000),
    "all candidates of many groups": lambda: ask(wide_trees(1, 600, 9), devices([1] * 300)),
    "different sizes on different children": lambda: ask(
        children({"CUSTOM_DEVICE": 1000 + n} for n in range(2, 202)),
        devices(range(10, 24)),
        limit=10,
    ),
    "divisions of an amount over many": lambda: ask(
        children([{"VCPU": 2}] * 398),
        [RequestGroup("", {"VCPU": 8})],
        can_split=frozenset({"VCPU"}),
    ),
    "large steps without a common divisor": lambda: ask(
        children(large_steps()),
        [RequestGroup("", {"CUSTOM_DEVICE": 2_000_000_011})],
        can_split=frozenset({"CUSTOM_DEVICE"}),
        limit=10,
    ),
    "sizes that nearly fit": lambda: ask(
        wide_trees(2, 34, 1000), devices(200 + n * 7919 % 700 for n in range(60)), limit=10
    ),
    "why 250 groups find nothing": lambda: explain(
        wide_trees(20, 24, 99), devices(1 + n % 97 for n in range(250))
    ),
}


def measure(name):
    """Answer a question; return the most megabytes of this process, and the most seconds between two checks."""
    work = QUESTIONS[name]()
    budget = MeasuringBudget(6.0, 256_000_000)
    with suppress(SearchGivenUpError, SearchTooLargeError):
        work(budget)
    budget.note_check()
    # The result of getrusage includes the process that started this one.
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    return peak // 1000, budget.longest
