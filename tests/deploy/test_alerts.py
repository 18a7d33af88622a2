# SPDX-License-Identifier: Apache-2.0
"""The alert rules: well formed, and about metrics that there are."""

import re

import pytest
import yaml
from prometheus_client import REGISTRY

from tests.paths import ROOT
from treeclaim import metrics  # noqa: F401 - defines the metrics
from treeclaim.admin.collectors import RESOURCE_METRICS

FILE = ROOT / "deploy" / "prometheus-rules.yaml"
RULES = [rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]]
COLLECTED = {
    "treeclaim_feed_committed",
    *RESOURCE_METRICS,
    "process_resident_memory_bytes",
}
"""What the admin listener reads at each scrape (treeclaim.admin)."""


def known():
    """The names of all samples of the service's own metrics."""
    parts = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
    own = {
        f"{family.name}{part}"
        for family in REGISTRY.collect()
        for part in parts.get(family.type, [""])
    }
    return own | COLLECTED


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_asks_for_metrics_that_exist_and_says_what_it_means(rule):
    names = set(re.findall(r"\b(?:treeclaim|process)_\w+", rule["expr"]))
    assert names
    assert names <= known()
    assert rule["expr"].count("(") == rule["expr"].count(")")
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description"}


def test_the_names_of_rules_are_unique():
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names)) > 4
