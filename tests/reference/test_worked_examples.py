# SPDX-License-Identifier: Apache-2.0
"""The reference returns what contract page 95 and the examples of the extension list."""

import pytest

from tests.reference.candidates import Reference
from tests.reference.worked_examples import BEYOND, request_of, sections

EXAMPLES = [
    pytest.param(section.world, example, id=f"{page}-{example.number}")
    for page, page_sections in (("page 95", sections()), ("extension", sections(BEYOND)))
    for section in page_sections
    for example in section.examples
    # The reference knows no limits.
    if "limit=" not in example.query
]


@pytest.mark.parametrize(("world", "example"), EXAMPLES)
def test_reference_returns_the_listed_candidates(world, example):
    request = request_of(example)
    reference = Reference(world)
    candidates = reference.candidates(request)
    assert len(candidates) == example.candidate_count
    if example.candidates is not None:
        has_mappings = example.minor >= 34
        listed = {candidate if has_mappings else candidate[0] for candidate in example.candidates}
        assert listed == {each if has_mappings else each[0] for each in candidates}
    names = reference.summaries(candidates, candidates, nested=request.nested)
    if example.summary_names is not None:
        assert names == example.summary_names
    if example.summary_count is not None:
        assert len(names) == example.summary_count
