# SPDX-License-Identifier: Apache-2.0
"""The way of a question that nobody has asked before is short: few calls, in few files.

Whoever reads what happens reads these calls, and most of the time of a short question goes into them. A call
that is needed raises the bounds; one that decides nothing goes.
"""

import sys
import threading
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

import treeclaim
from tests.api.raw import send
from tests.service import filled_database_of, start_on
from treeclaim.forest.bounds import budget

MOST_CALLS = 290
MOST_SWITCHES = 188
"""Calls whose code is in another file than that of the call before."""

HOSTS = 3

_CODE = str(Path(treeclaim.__file__).parent)


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    """A service with some hosts, which nobody writes to."""
    folder = tmp_path_factory.mktemp("calls")
    with start_on(filled_database_of(fill, folder), folder) as service:
        yield service


def fill(client):
    """Write the hosts."""
    for number in range(HOSTS):
        host = f"10000000-0000-4000-8000-{number:012}"
        made = client.post("/resource_providers", json={"name": f"host {number}", "uuid": host})
        assert made.is_success
        stock = {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 262_144}}
        body = {"inventories": stock, "resource_provider_generation": 0}
        assert client.put(f"/resource_providers/{host}/inventories", json=body).is_success


@contextmanager
def calls_noted():
    """Note the file and name of each function of the package that is called, in threads too."""
    calls = []

    def note(frame, event, _argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_CODE):
            calls.append((code.co_filename.removeprefix(_CODE), code.co_name))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def calls_of(application, memory):
    """The calls of a question for a flavor with so much memory."""
    query = f"resources=VCPU:2,MEMORY_MB:{memory}&limit=1000".encode()
    with calls_noted() as calls:
        answer = send(application, "GET", "/allocation_candidates", query=query)
    assert len(answer.json()["allocation_requests"]) == HOSTS
    return calls


def test_a_new_question_needs_few_calls_in_few_files(application, monkeypatch):
    # How often the clock is looked at depends on how busy the machine is.
    monkeypatch.setattr(budget, "_INTERRUPT_SECONDS", 3600.0)
    for memory in range(512, 520):
        calls_of(application, memory)
    walks = [calls_of(application, memory) for memory in range(1024, 1029)]
    walk = min(walks, key=len)
    switches = sum(one[0] != other[0] for one, other in pairwise(walk))
    told = "\n".join(f"{file} {name}" for file, name in walk)
    assert len(walk) <= MOST_CALLS, told
    assert switches <= MOST_SWITCHES, told


def test_a_question_that_was_asked_before_needs_a_third_fewer(application):
    first = calls_of(application, 2048)
    assert len(calls_of(application, 2048)) < len(first) * 2 / 3
