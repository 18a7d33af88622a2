# SPDX-License-Identifier: Apache-2.0
"""Flavors pasted into the page Fit."""

import json

import pytest

pytestmark = pytest.mark.slow

READ = """async text => {
  const { Client } = await import('./api/client.js');
  const { readFlavors } = await import('./model/flavors.js');
  const quiet = () => {};
  const api = new Client('admin', { lost: quiet, answered: quiet, refused: quiet });
  try { return await readFlavors(api, text); } catch (error) { return String(error); }
}"""

ROW = {"Name": "m1", "RAM": 512, "Disk": 0, "VCPUs": 4, "Properties": {"trait:A": "required"}}
PASTED = {
    "json": json.dumps([ROW]),
    "by name": json.dumps(
        {"m1": {"vcpus": 4, "ram": 512, "extra_specs": {"trait:A": "required"}}}
    ),
    "properties": json.dumps(
        {"name": "m1", "ram": 512, "disk": 0, "vcpus": 4, "properties": "trait:A='required'"}
    ),
    "blocks": "[m1]\nvcpus=4\nram=512\n--property trait:A=required\n",
    "heading": "# a remark\nm1:\nvcpus = 4\nram=512\n'trait:A=required'",
    "query": "m1: resources=VCPU:4,MEMORY_MB:512&required=A",
}
MISTAKES = {
    "[m1]\nvcpus=four": ["m1", "vcpus", "four"],
    "[m1]\nvcpus=4\nsam_subtree=_A": ["sam_subtree", "'same_subtree'"],
    '[{"Name": "m1", "VCPUs": "four"}]': ["m1", "VCPUs", "four"],
    '{"m1": {"vcpus": 1}, "m2": {"vcpu": 1}}': ["m2", "'vcpus'"],
    "[m1]\nowner=me": ["m1", "no resources"],
    "[m1]\nvcpus": ["line 2"],
    '{"m1"': ["not JSON"],
}


def test_flavors_can_be_pasted_in_several_forms(visit, cloud):
    page = visit(cloud).open("#/fit")
    for form, text in PASTED.items():
        query = "resources=VCPU:4,MEMORY_MB:512&required=A"
        if form != "query":
            query += "&root_required=!COMPUTE_STATUS_DISABLED"
        assert page.evaluate(READ, text) == [{"name": "m1", "query": query}], form


def test_flavors_of_one_name_are_numbered(visit, cloud):
    page = visit(cloud).open("#/fit")
    flavors = page.evaluate(READ, "a: resources=VCPU:1\n[a]\nvcpus=2\n[a]\nvcpus=3")
    assert [(flavor["name"], flavor["query"][:16]) for flavor in flavors] == [
        ("a", "resources=VCPU:1"),
        ("a (2)", "resources=VCPU:2"),
        ("a (3)", "resources=VCPU:3"),
    ]


def test_wrong_flavor_is_refused_with_its_name_and_a_hint(visit, cloud):
    page = visit(cloud).open("#/fit")
    for text, words in MISTAKES.items():
        message = page.evaluate(READ, text)
        assert isinstance(message, str), (text, message)
        assert [word for word in words if word not in message] == [], (text, message)
