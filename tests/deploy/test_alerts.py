# SPDX-License-Identifier: Apache-2.0
"""The alert rules: well formed, about metrics that there are, and firing when they should."""

import re
import subprocess

import pytest
import yaml

from tests.paths import ROOT

FILE = ROOT / "deploy" / "prometheus-rules.yaml"
CASES = ROOT / "tests" / "deploy" / "alerts.yaml"
RULES = [rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alert_rule_uses_existing_metrics_and_is_described(rule, known_metrics):
    names = set(re.findall(r"\b(?:treeclaim|process)_\w+", rule["expr"]))
    assert names
    assert names <= known_metrics
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description"}


def test_each_alert_has_a_firing_and_a_silent_case():
    tried = {True: set(), False: set()}
    for case in yaml.safe_load(CASES.read_text())["tests"]:
        for expectation in case["alert_rule_test"]:
            tried[bool(expectation["exp_alerts"])].add(expectation["alertname"])
    every = {rule["alert"] for rule in RULES}
    assert tried == {True: every, False: every}


def promtool(*arguments):
    """Return the output of promtool, which must report no fault."""
    result = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("promtool")
def test_prometheus_accepts_the_rules_and_each_fires_when_it_should(tmp_path):
    promtool("check", "rules", FILE)
    rules = yaml.safe_load(FILE.read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        del rule["annotations"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES.read_text().replace("RULES", "rules.yaml"))
    promtool("test", "rules", cases)
