# SPDX-License-Identifier: Apache-2.0
"""The worst known questions leave a worker below a gigabyte, and end in time.

Each question is asked in a process of its own, which tells its greatest resident set, and how much
work it did at most between two looks at its budget.
"""

import subprocess
import sys

import pytest

from tests.forest.building import body_of, forest_of, wide_trees
from tests.machine import slowness
from tests.paths import ROOT
from treeclaim.model.errors import SearchTooLargeError
from treeclaim.model.request import CandidateRequest, RequestGroup, SearchOptions

MOST_MEGABYTES = 1_000

MOST_BETWEEN_LOOKS = 3.0
"""Seconds of the processor: a tenth of the default `search_seconds`, by which a refusal may be late.
The most is a tenth of that."""

PRELUDE = """
from pathlib import Path
from tests.forest.building import *
from treeclaim.model.provider import Inventory
from treeclaim.model.errors import SearchGivenUpError, SearchTooLargeError
from treeclaim.model.request import *
from time import process_time
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.explain import Focus, explain_request

class Noting(Budget):
    last, most = process_time(), 0.0

    def check(self):
        self.most = max(self.most, process_time() - self.last)
        super().check()
        self.last = process_time()

OPTIONS = {"seconds": 6.0, "most_bytes": 256_000_000}

def ask(records, groups, form=BodyForm(), options={}, **more):
    forest = forest_of(records)
    request = CandidateRequest(tuple(groups), **more)
    budget = Noting(OPTIONS["seconds"], OPTIONS["most_bytes"])
    budget.last = process_time()
    try:
        answer = search(forest, request, SearchOptions(**OPTIONS, **options), form, budget)
        written = sum(len(piece) for piece in answer.pieces())
        outcome = f"{written} bytes"
    except (SearchGivenUpError, SearchTooLargeError) as error:
        outcome = type(error).__name__
    tell(outcome, budget)

def explain(records, groups):
    forest = forest_of(records)
    budget = Noting(OPTIONS["seconds"], OPTIONS["most_bytes"])
    budget.last = process_time()
    try:
        outcome = explain_request(forest, CandidateRequest(tuple(groups)), Focus(), budget)["feasible"]
    except (SearchGivenUpError, SearchTooLargeError) as error:
        outcome = type(error).__name__
    tell(outcome, budget)

def tell(outcome, budget):
    most = max(budget.most, process_time() - budget.last)
    print(outcome, most, most_kilobytes() // 1000)

def most_kilobytes():
    # What getrusage tells includes the process that started this one.
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))

def devices(count, amount=1, step=0):
    return [RequestGroup(f"_{n}", {"CUSTOM_DEVICE": amount + n * step}) for n in range(count)]

pool = provider_uuid(99_999)
hosts = [record(n, None, None, {"VCPU": 8}, (), (pool,)) for n in range(1, 301)]
pools = [record(n, None, None, {"DISK_GB": 900}, (SHARING_TRAIT,), (pool,)) for n in range(301, 451)]
disks = [RequestGroup(f"_{n}", {"DISK_GB": 1}) for n in range(4)]
"""

QUESTIONS = {
    "all candidates of sharing providers": "ask(hosts + pools, disks)",
    "a limit below 1.29": "ask(hosts + pools, disks, BodyForm(nested=False), nested=False, limit=1)",
    "all below 1.29": "ask(hosts + pools, disks, BodyForm(nested=False), nested=False)",
    "a random order of all": "ask(hosts + pools, disks, options={'randomize': True})",
    "the trees in turn": "ask(hosts + pools, disks, options={'breadth_first': True})",
    "many groups on a wide tree": "ask(wide_trees(2, 512), devices(512), limit=1000)",
    "all candidates of many groups": "ask(wide_trees(1, 600, 9), devices(300))",
    "different sizes on different children": (
        "ask([record(1)] + [record(n, 1, 1, {'CUSTOM_DEVICE': 1000 + n}) for n in range(2, 202)],"
        " devices(14, 10, 1), limit=10)"
    ),
    "divisions of an amount over many": (
        "ask([record(1)] + [record(n, 1, 1, {'VCPU': 2}) for n in range(2, 400)],"
        " [RequestGroup('', {'VCPU': 8})], can_split=frozenset({'VCPU'}))"
    ),
    "large steps without a common divisor": (
        "ask([record(1)] + [record(n, 1, 1, {'CUSTOM_DEVICE': Inventory(total=2**30,"
        " step_size=100_003 + 2 * n * n, max_unit=2**30, min_unit=100_003 + 2 * n * n)})"
        " for n in range(2, 42)], [RequestGroup('', {'CUSTOM_DEVICE': 2_000_000_011})],"
        " can_split=frozenset({'CUSTOM_DEVICE'}), limit=10)"
    ),
    "sizes that nearly fit": (
        "ask(wide_trees(2, 34, 1000), [RequestGroup(f'_{n}', {'CUSTOM_DEVICE': 200 + n * 7919 % 700})"
        " for n in range(60)], limit=10)"
    ),
    "why 250 groups find nothing": (
        "explain(wide_trees(20, 24, 99), [RequestGroup(f'_{n}', {'CUSTOM_DEVICE': 1 + n % 97})"
        " for n in range(250)])"
    ),
}


def told_of(question):
    """The last two numbers that the process of a question tells: seconds and megabytes."""
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + question],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()[-2:]


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_worst_queries_stay_below_a_gigabyte_and_check_their_budget_often(question):
    seconds, megabytes = told_of(question)
    assert int(megabytes) < MOST_MEGABYTES
    assert float(seconds) < MOST_BETWEEN_LOOKS * slowness()


def test_search_over_its_memory_limit_is_refused():
    """To choose at random among all, it has to hold all."""
    groups = tuple(RequestGroup(f"_{number}", {"CUSTOM_DEVICE": 1}) for number in range(6))
    options = SearchOptions(seconds=60, most_bytes=5_000_000, randomize=True)
    with pytest.raises(SearchTooLargeError):
        body_of(forest_of(wide_trees(1, 40)), CandidateRequest(groups), options)
