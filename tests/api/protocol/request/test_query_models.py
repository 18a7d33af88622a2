# SPDX-License-Identifier: Apache-2.0
"""Refused query strings of the extension: the parameter, its value, and what is expected there."""

import pytest

from tests.api.resources.extension.clouds import EXTENDED
from tests.service import client_of, make_application

UUID = "6f3b1a52-7a7d-4f0e-9a55-0c1c2f7f8a10"

REFUSALS = [
    ("providers?include=", "include"),
    ("providers?marker=", "marker"),
    ("providers?required=%21CUSTOM_NOBODY", "CUSTOM_NOBODY"),
    ("providers?resources=CUSTOM_NO:1", "CUSTOM_NO"),
    ("allocations?resource_class=CUSTOM_NOBODY", "CUSTOM_NOBODY"),
    ("allocations?required=HW_CPU_X86_AVX2", "unknown 'required'"),
    ("totals?resource_class=CUSTOM_NOBODY", "CUSTOM_NOBODY"),
    ("totals?by=tree&marker=dHJlZTphYmM", "marker"),
    ("changes?in_tree=x", "in_tree"),
    ("audit?kind=orphaned", "orphaned"),
    ("providers?uuid=x", 'uuid: "x" is not a UUID with dashes'),
    (f"providers?in_tree=in:{UUID},x", 'in_tree: "x" is not a UUID with dashes'),
    (f"providers?uuid={UUID},{UUID}", "is not a UUID with dashes"),
    ("providers?limit=0", "limit: 0 is less than 1"),
    ("providers?limit=01", 'limit: "01" is not an integer'),
    ("providers?limit=1.5", 'limit: "1.5" is not an integer'),
    (f"providers?limit={'9' * 60}", "is not an integer"),
    ("providers?limit=10001", "limit: 10001 is more than 10000"),
    ("providers?include=allocations&limit=1001", "Invalid limit: 1001 is more than 1000."),
    ("providers?include=usages,pets", "include: \"pets\" is not one of 'inventories', 'usages', "),
    ("providers?resources=VCPU", "Badly formed resources parameter."),
    ("providers?required=%21", "Expected 'required' parameter value of the form"),
    ("providers?member_of=x", "Expected 'member_of' parameter to contain valid UUID(s)."),
    ("providers?nmae=x", "unknown 'nmae'; did you mean 'name'? Known are "),
    ("providers?marker=%2B", "Invalid marker: + was not given by this list."),
    ("allocations?marker=YQ", "Invalid marker: YQ was not given by this list."),
    ("allocations?consumer_type=x", 'consumer_type: "x" is not the name of a consumer type'),
    ("allocations?project_id=", "project_id: a text of fewer than 1 characters"),
    ("allocations?include=pets", "include: \"pets\" is not one of 'requests'"),
    ("allocations?created_since=x", "Invalid created_since: x is not a time in the form"),
    ("allocations?resource_class=in:VCPU,x", 'resource_class: "x" is not a name of capital'),
    ("holds?until_before=1", "Invalid until_before: 1 is not a time in the form of RFC 3339."),
    ("totals?by=rack", "by: \"rack\" is not one of 'tree', 'aggregate' or 'trait'"),
    ("changes?wait=61", "wait: 61 is more than 60"),
    ("audit?kind=pets", "kind: \"pets\" is not one of 'over_capacity', "),
    ("audit?limit=1001", "limit: 1001 is more than 1000"),
    ("aggregates/names?uuid=x", 'uuid: "x" is not a UUID with dashes'),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with client_of(make_application(tmp_path_factory.mktemp("queries"))) as client:
        yield client


@pytest.mark.parametrize(("path", "words"), REFUSALS, ids=str)
def test_refusals_name_the_parameter_and_the_expected_value(client, path, words):
    answer = client.get(f"/treeclaim/{path}", headers=EXTENDED)
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["code"]) == (400, "placement.undefined_code")
    assert words in error["detail"]
    assert len(error["detail"]) < 1_000


def test_last_occurrence_of_a_parameter_counts(client):
    path = f"/treeclaim/providers?limit=x&limit=2&uuid=in:{UUID}&uuid={UUID}"
    assert client.get(path, headers=EXTENDED).json()["providers"] == []
