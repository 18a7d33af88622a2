# SPDX-License-Identifier: Apache-2.0
"""The declaration of a query parameter holds wherever the parameter is known."""

from urllib.parse import quote

import pytest

from tests.service import client_of, make_application
from treeclaim.client import Flavor, query_of
from treeclaim.model.microversions import Feature
from treeclaim.model.query.parameters import QUERY_PARAMETERS, Grammar, split_name

NOBODY = "00000000-0000-0000-0000-000000000001"
VALUES = {
    Grammar.AMOUNTS: "VCPU:1",
    Grammar.TRAITS_OR_ANY: "HW_CPU_X86_AVX2",
    Grammar.PREFERENCES: "HW_CPU_X86_AVX2",
    Grammar.AGGREGATES: NOBODY,
    Grammar.TREES: NOBODY,
    Grammar.TREES_OR_NOT: NOBODY,
    Grammar.UUIDS: NOBODY,
    Grammar.CLASSES: "VCPU",
    Grammar.KEYS: "CLEANING",
    Grammar.SUFFIXES: "1",
    Grammar.SUFFIXES_OR_NOT: "1",
    Grammar.EXPRESSION: "not exists mem_gib",
    Grammar.VALUE_LIST: "mem_gib:1:2",
    Grammar.TERMS: "pack",
    Grammar.NUMBER: "1",
}
EACH = pytest.mark.parametrize("parameter", QUERY_PARAMETERS, ids=lambda each: each.name)


def value_of(parameter):
    return parameter.choices[0] if parameter.choices else VALUES[parameter.grammar]


def header(minor, extension=None):
    with_extension = "" if extension is None else f", treeclaim 1.{extension}"
    return {"OpenStack-API-Version": f"placement 1.{minor}{with_extension}"}


def url_of(parameter, times=1):
    query = {
        "resources": ["VCPU:1"],
        "resources1": ["VCPU:1"],
        "resources2": ["VCPU:1"],
        "group_policy": ["none"],
    }
    if parameter.name == "isolate":
        del query["group_policy"]
    query[parameter.name] = [value_of(parameter)] * times
    pairs = [f"{name}={quote(value)}" for name, values in query.items() for value in values]
    return f"/allocation_candidates?{'&'.join(pairs)}"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    client = client_of(make_application(tmp_path_factory.mktemp("service")))
    yield client
    client.close()


@EACH
def test_parameter_is_accepted_from_its_version_on(service, parameter):
    is_extended = parameter.since is Feature.EXTENSION
    first = header(39, 0) if is_extended else header(parameter.since)
    if parameter.name not in ("resources", "limit", "required", "member_of"):
        # In earlier versions, the groups of this query are unknown.
        assert service.get(url_of(parameter), headers=first).status_code == 200
    before = header(parameter.since - 1)
    refused = service.get(f"/allocation_candidates?{parameter.name}=1", headers=before)
    assert refused.status_code in (400, 404)


@EACH
def test_repeated_parameter_is_refused_as_declared(service, parameter):
    answer = service.get(url_of(parameter, times=2), headers=header(39, 0))
    is_refused = not parameter.may_repeat
    assert answer.status_code == (400 if is_refused else 200), answer.text
    if is_refused:
        assert answer.json()["errors"][0]["code"] == "placement.query.duplicate_key"


@EACH
def test_flavor_can_express_every_parameter(parameter):
    value = value_of(parameter)
    if parameter.flavor_items is not None:
        specs = {"resources:VCPU": "1", "trait:HW_CPU_X86_AVX2": "required"}
    else:
        specs = {parameter.name: value}
    parameters = query_of(Flavor(extra_specs=specs)).parameters
    assert (parameter.name, value) in parameters


@EACH
def test_suffix_is_accepted_for_group_parameters_only(parameter):
    name, suffix = split_name(f"{parameter.name}_GPU")
    if parameter.of_group:
        assert (name, suffix) == (parameter.name, "_GPU")
    else:
        assert suffix is None
