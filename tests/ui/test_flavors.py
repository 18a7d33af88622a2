# SPDX-License-Identifier: Apache-2.0
"""The pages read flavors as the package does: its cases are theirs too."""

import json
from urllib.parse import parse_qsl

import pytest

from tests.paths import ROOT

CASES = json.loads((ROOT / "tests" / "client" / "flavors.json").read_text())

_READ = """async flavors => {
  const { queryOf } = await import('./model/flavors.js');
  const { flavorOf } = await import('./model/flavor-documents.js');
  return flavors.map((flavor) => {
    try { return { query: queryOf(flavorOf(flavor)) }; } catch (error) { return { told: String(error) }; }
  });
}"""


@pytest.mark.slow
def test_pages_parse_flavors_like_the_package(visit, cloud):
    page = visit(cloud).open("#/fit")
    found = page.evaluate(_READ, [case["flavor"] for case in CASES])
    for case, answer in zip(CASES, found, strict=True):
        if "query" in case:
            assert parse_qsl(answer.get("query")) == parse_qsl(case["query"]), (case, answer)
        else:
            result = answer.get("told", "nothing")
            assert [word for word in case["refused"] if word not in result] == [], (case, result)


MISTAKES = {
    "[m1]\nvcpus=four": ["vcpus", "four"],
    "[m1]\nvcpu=4": ["vcpu", "'vcpus'"],
    "[m1]\nvcpus=4\nsam_subtree=_A": ["sam_subtree", "'same_subtree'"],
    '[{"Name": "m1", "VCPUs": "four"}]': ["m1", "VCPUs", "four"],
    '{"m1": {"vcpus": 1}, "m2": {"vcpu": 1}}': ["m2", "'vcpus'"],
    "[m1]\nhw:cpu_polcy=dedicated": ["hw:cpu_policy"],
    "[m1]\nowner=me": ["m1", "nothing"],
}


@pytest.mark.slow
def test_misspelt_flavor_text_is_refused_with_a_hint(visit, cloud):
    page = visit(cloud).open("#/fit")
    for text, words in MISTAKES.items():
        result = page.evaluate(
            "async text => { const { readFlavors } = await import('./model/flavors.js');"
            " try { return JSON.stringify(readFlavors(text)); } catch (error) { return String(error); } }",
            text,
        )
        assert result.startswith("Error"), (text, result)
        assert [word for word in words if word not in result] == [], (text, result)
