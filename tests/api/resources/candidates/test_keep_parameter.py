# SPDX-License-Identifier: Apache-2.0
"""`keep:MIX:CLASS` in `order_by` (contract page 101, section 3)."""

import pytest

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.resources.candidates.operations import request_of
from treeclaim.api.resources.candidates.order_parameters import with_mixes
from treeclaim.model.extension.mixes import Mix, MixRequest
from treeclaim.model.extension.order import Term, TermName
from treeclaim.model.microversions import NEWEST, Version
from treeclaim.model.request import CandidateRequest

_PLANNING = NEWEST
_MOST_GROUPS = 100


def _asked(query: str, version: Version = _PLANNING) -> CandidateRequest:
    return request_of(query, version, _MOST_GROUPS)


def _mix(query: str = "resources=VCPU:1") -> Mix:
    return Mix("pods", {"small": MixRequest(_asked(query), 3)})


def test_the_term_has_the_name_of_a_mix_a_class_and_a_weight() -> None:
    order = _asked("resources=VCPU:1&order_by=keep:pods:VCPU*7,pack").order
    assert order is not None
    assert order.terms == (Term(TermName.KEEP, ("pods", "VCPU"), 7), Term(TermName.PACK))
    assert order.mix_names == {"pods"}


@pytest.mark.parametrize(
    "term", ["keep", "keep:pods", "keep:pods:", "keep::VCPU", "keep:pods:VCPU:MEMORY_MB"]
)
def test_a_term_without_both_is_refused(term: str) -> None:
    with pytest.raises(ApiError) as told:
        _asked(f"resources=VCPU:1&order_by={term}")
    assert (told.value.status, told.value.code) == (400, "placement.query.bad_value")
    assert "order_by" in told.value.detail


def test_a_request_gets_the_mixes_that_it_names_and_no_others() -> None:
    asked = _asked("resources=VCPU:1&order_by=keep:pods:VCPU")
    known = with_mixes(asked, {"pods": _mix(), "other": _mix()})
    assert known.order is not None
    assert known.order.mixes == (_mix(),)
    assert known != asked
    assert known != with_mixes(asked, {"pods": _mix("resources=VCPU:2")})
    plain = _asked("resources=VCPU:1&order_by=pack")
    assert with_mixes(plain, {"pods": _mix()}) is plain


@pytest.mark.parametrize(
    ("term", "word"),
    [
        ("keep:none:VCPU", "'none'"),
        ("keep:pods:MEMORY_MB", "'MEMORY_MB'"),
        (f"keep:{'x' * 5000}:VCPU", "x…"),
    ],
)
def test_an_unknown_mix_or_a_class_that_it_does_not_ask_for_is_refused(
    term: str, word: str
) -> None:
    asked = _asked(f"resources=VCPU:1&order_by={term}")
    with pytest.raises(ApiError) as told:
        with_mixes(asked, {"pods": _mix()})
    assert (told.value.status, told.value.code) == (400, "placement.query.bad_value")
    assert word in told.value.detail
    assert len(told.value.detail) < 1000
