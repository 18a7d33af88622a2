# SPDX-License-Identifier: Apache-2.0
"""Values in errors are cut, so that a request does not decide how much is written."""

import pytest

from tests.service import client_of, make_application
from treeclaim.model.names import LONGEST_QUOTED

LONG = "x" * 20_000
MOST = 3 * LONGEST_QUOTED
"""Characters of an error that quotes two values, with its own words."""

QUESTIONS = [
    f"/allocation_candidates?resources={LONG}",
    f"/allocation_candidates?resources=VCPU:{LONG}",
    f"/allocation_candidates?resources=VCPU:1&required={LONG},,",
    f"/allocation_candidates?resources=VCPU:1&member_of={LONG}",
    f"/allocation_candidates?resources=VCPU:1&in_tree={LONG}",
    f"/allocation_candidates?resources=VCPU:1&same_subtree=_{LONG}",
    f"/resource_providers?member_of={LONG}",
    f"/traits?associated={LONG}",
    f"/traits?name={LONG}",
    f"/traits/{LONG}",
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a service without providers."""
    with client_of(make_application(tmp_path_factory.mktemp("service"))) as made:
        yield made


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda text: text[:60])
def test_an_error_that_quotes_a_long_value_is_short(client, question):
    answer = client.get(question)
    assert answer.status_code in {400, 404, 414}
    assert len(answer.json()["errors"][0]["detail"]) < MOST
