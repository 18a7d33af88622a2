# SPDX-License-Identifier: Apache-2.0
"""The client that measures draws each candidate of an answer, however the answer is written."""

import json
import random

import pytest

from bench.clients.candidates import drawn

CANDIDATES = [
    {"mappings": {"": [f"host {number}"]}, "allocations": {f"host {number}": {"VCPU": number}}}
    for number in range(20)
]
SUMMARIES = {f"host {number}": {"resources": {}} for number in range(20)}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("is_last", [True, False])
def test_only_listed_candidates_are_drawn(separators, is_last):
    names = ["provider_summaries", "allocation_requests"]
    parts = dict(zip(names, [SUMMARIES, CANDIDATES], strict=True))
    answer = {name: parts[name] for name in (names if is_last else names[::-1])}
    text = json.dumps(answer, separators=separators).encode()
    dice = random.Random(1)
    candidates = [drawn(text, dice) for _ in range(1000)]
    assert {json.dumps(candidate) for candidate in candidates} == {
        json.dumps(candidate["allocations"]) for candidate in CANDIDATES
    }


def test_response_without_candidates_raises_value_error():
    with pytest.raises(ValueError, match="no candidate"):
        drawn(b'{"allocation_requests":[],"provider_summaries":{}}', random.Random(1))
