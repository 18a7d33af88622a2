# SPDX-License-Identifier: Apache-2.0
"""One worker stays under a gigabyte, whatever it is asked (the worst questions known).

Each question is asked in a process of its own, which tells its greatest resident set.
"""

import subprocess
import sys

import pytest

from tests.paths import ROOT

MOST_MEGABYTES = 1_000

PRELUDE = """
from pathlib import Path
from tests.forest.building import *
from treeclaim.model.errors import SearchGivenUpError, SearchTooLargeError
from treeclaim.model.request import *

OPTIONS = {"seconds": 6.0, "most_bytes": 256_000_000}

def ask(records, groups, form=BodyForm(), options={}, **more):
    forest = forest_of(records)
    request = CandidateRequest(tuple(groups), **more)
    try:
        answer = search(forest, request, SearchOptions(**OPTIONS, **options), form)
        written = sum(len(piece) for piece in answer.pieces())
        outcome = f"{written} bytes"
    except (SearchGivenUpError, SearchTooLargeError) as error:
        outcome = type(error).__name__
    print(outcome, most_kilobytes() // 1000)

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
}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_no_question_takes_more_than_a_gigabyte(question):
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + question],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < MOST_MEGABYTES, done.stdout
