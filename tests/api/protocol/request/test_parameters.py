# SPDX-License-Identifier: Apache-2.0
"""Parameters that several operations share (contract pages 20 and 90)."""

import pytest

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.request.parameters import (
    Membership,
    Traits,
    member_of,
    require_repeatable,
    required,
    resources,
)
from treeclaim.model.microversions import MAXIMUM, Version

A, B = (f"{number}0000000-0000-4000-8000-000000000000" for number in (1, 2))


def test_resources_are_amounts_by_class_and_the_last_amount_counts():
    assert resources("VCPU:1") == {"VCPU": 1}
    assert resources("VCPU:1,DISK_GB:20,VCPU:3") == {"VCPU": 3, "DISK_GB": 20}
    assert resources("VCPU:" + "9" * 400) == {"VCPU": int("9" * 400)}


@pytest.mark.parametrize(
    "value", ["", " ", "VCPU", "VCPU:", "VCPU:x", "VCPU:0", "VCPU:-1", "VCPU:1.5", "VCPU:1:2", ","]
)
def test_resources_of_another_form_are_refused(value):
    with pytest.raises(ApiError) as found:
        resources(value)
    assert found.value.status == 400


def test_required_traits_are_needed_each_forbidden_ones_absent():
    assert required("A,B", MAXIMUM) == Traits((frozenset("A"), frozenset("B")))
    assert required(" A , !B ", MAXIMUM) == Traits((frozenset("A"),), frozenset("B"))
    assert required("in:A,B", MAXIMUM) == Traits((frozenset("AB"),))


@pytest.mark.parametrize(
    ("value", "version"),
    [
        ("", MAXIMUM),
        ("A,", MAXIMUM),
        ("!", MAXIMUM),
        ("!A", Version(1, 21)),
        ("in:A", Version(1, 38)),
        ("in:A,!B", MAXIMUM),
        ("in:", MAXIMUM),
    ],
)
def test_required_of_another_form_is_refused(value, version):
    with pytest.raises(ApiError) as found:
        required(value, version)
    assert found.value.status == 400


def test_a_forbidden_trait_needs_its_version():
    assert required("!A", Version(1, 22)) == Traits((), frozenset("A"))


def test_any_of_some_traits_may_be_kept_from_a_parameter():
    with pytest.raises(ApiError):
        required("in:A", MAXIMUM, any_allowed=False)


def test_member_of_repeats_from_1_24_on():
    for version in (Version(1, 23), Version(1, 24)):
        require_repeatable([], version)
        require_repeatable([A], version)
    require_repeatable([A, B], Version(1, 24))
    with pytest.raises(ApiError) as found:
        require_repeatable([A, B], Version(1, 23), "_X")
    assert "member_of_X" in found.value.detail


def test_member_of_reads_sets_and_forbidden_aggregates():
    assert member_of([A], MAXIMUM) == Membership((frozenset({A}),))
    assert member_of([f"in:{A},{B}", A], MAXIMUM) == Membership(
        (frozenset({A, B}), frozenset({A}))
    )
    assert member_of([f"!{A}", f"!in:{B}"], MAXIMUM) == Membership((), frozenset({A, B}))
    assert member_of([f"!{A}"], Version(1, 32)) == Membership((), frozenset({A}))


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (f"!{A}", Version(1, 31)),
        (f"{A},{B}", MAXIMUM),
        ("here", MAXIMUM),
        ("in:", MAXIMUM),
        (f"in:{A},", MAXIMUM),
    ],
)
def test_member_of_of_another_form_is_refused(value, version):
    with pytest.raises(ApiError) as found:
        member_of([value], version)
    assert found.value.status == 400
