# SPDX-License-Identifier: Apache-2.0
"""Nova's flavors become the queries of its documentation of extra specs: `flavors.json` has cases."""

import json

import pytest

from tests.paths import ROOT
from treeclaim.client import CandidateQuery, query_of
from treeclaim.model.flavors import Flavor, FlavorError, parse_flavor, parse_flavors
from treeclaim.model.server_flavors import translate_flavor

CASES = json.loads((ROOT / "tests" / "client" / "flavors.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_flavor_becomes_the_query_of_nova_or_is_refused(case):
    if "query" in case:
        assert (
            str(CandidateQuery(translate_flavor(parse_flavor(case["flavor"])).parameters))
            == case["query"]
        )
        return
    with pytest.raises(FlavorError) as caught:
        translate_flavor(parse_flavor(case["flavor"]))
    assert [word for word in case["refused"] if word not in str(caught.value)] == []


def test_own_query_of_a_flavor_has_no_condition_of_nova():
    flavor = Flavor(vcpus=2, extra_specs={"trait:CUSTOM_A": "required", "hw:cpu_policy": "mixed"})
    assert str(query_of(flavor)) == "resources=VCPU:2&required=CUSTOM_A"


def test_extra_specs_judged_by_nova_are_listed():
    specs = {"hw:numa_nodes": "1", "pci_passthrough:alias": "a:1", "quota:cpu_shares": "1"}
    result = translate_flavor(Flavor(vcpus=1, extra_specs=specs))
    assert result.omitted_specs == ("hw:numa_nodes", "pci_passthrough:alias")


def test_unknown_members_of_a_nova_flavor_are_ignored():
    assert parse_flavor({"vcpus": 1, "vcpu": 2}, is_typed=False) == Flavor(vcpus=1)


ONE_VCPU = Flavor(vcpus=1)


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ({"vcpus": 1}, {"flavor 1": ONE_VCPU}),
        ({"name": "a", "vcpus": 1}, {"a": ONE_VCPU}),
        ([{"Name": "a", "VCPUs": 1}, {"ID": 7, "VCPUs": 1}], {"a": ONE_VCPU, "7": ONE_VCPU}),
        ([{"name": "a", "vcpus": 1}, {"name": "a"}], {"a": ONE_VCPU, "a (2)": Flavor()}),
        ({"a": {"vcpus": 1}, "disk": {"disk": 2}}, {"a": ONE_VCPU, "disk": Flavor(disk=2)}),
        ({}, {}),
    ],
    ids=str,
)
def test_document_may_have_one_or_several_flavors(document, names):
    assert parse_flavors(document) == names


@pytest.mark.parametrize("document", [None, 1, "vcpus", ["x"], {"a": {"vcpu": 1}}], ids=str)
def test_invalid_flavor_document_is_refused(document):
    with pytest.raises(FlavorError):
        parse_flavors(document)
