# SPDX-License-Identifier: Apache-2.0
"""`condition` and `conditions`, and what others show of them, as a person runs them (page 102)."""

import json

import pytest

from tests.cli.processes import call
from tests.cli.services import refused, served, succeed
from tests.paths import EXAMPLE

UNTIL = "2099-12-01T09:00:00+01:00"


@pytest.fixture
def environment(tmp_path):
    """The environment of commands that talk to a service with the example topology."""
    with served(tmp_path) as environment:
        assert call(environment, "load", str(EXAMPLE)).returncode == 0
        yield environment


def a_root(environment):
    """Name and uuid of a root."""
    row = json.loads(succeed(environment, "tree", "-f", "json"))[0]
    return row["name"], row["uuid"]


@pytest.mark.slow
def test_condition_is_set_listed_shown_and_unset(environment):
    name, uuid = a_root(environment)
    assert "No provider has a condition." in succeed(environment, "condition", "list")
    terms = ("--effect", "leave", "--reason", "fan 2", "--until", UNTIL)
    output = succeed(environment, "condition", "set", name, "FAILING", *terms, "--dry-run")
    assert "would affect" in output and "0 consumers" in output
    assert "No provider has a condition." in succeed(environment, "condition", "list")
    assert succeed(environment, "condition", "set", name, "FAILING", *terms) == ""
    succeed(environment, "condition", "set", uuid, "ONCE", "--on-use")
    listed = succeed(environment, "condition", "list")
    for words in (name, "FAILING", "leave", "2099-12-01T08:00:00Z", "fan 2", "once it is used"):
        assert words in listed
    (row,) = json.loads(
        succeed(environment, "condition", "list", "--in-tree", name, "-f", "json")
    )["providers"]
    assert (row["uuid"], list(row["conditions"])) == (uuid, ["FAILING", "ONCE"])
    words = "FAILING (leave until 2099-12-01T08:00:00Z): fan 2"
    assert f"condition {words}" in succeed(environment, "tree")
    shown = succeed(environment, "provider", "show", name)
    assert words in shown
    assert "ONCE (no_new, once it is used)" in shown
    shown = json.loads(succeed(environment, "provider", "show", name, "-f", "json"))["conditions"]
    assert shown["FAILING"]["reason"] == "fan 2"
    succeed(environment, "condition", "unset", name, "FAILING")
    succeed(environment, "condition", "unset", name, "ONCE")
    assert "no condition FAILING" in refused(environment, "condition", "unset", name, "FAILING")
    assert "No provider has a condition." in succeed(environment, "condition", "list")


@pytest.mark.slow
def test_invalid_condition_arguments_are_refused_in_one_line(environment):
    name, _ = a_root(environment)
    assert "there is no provider" in refused(environment, "condition", "set", "nobody", "A")
    assert "Invalid key" in refused(environment, "condition", "set", name, "lower")
    assert "is not a time" in refused(
        environment, "condition", "set", name, "A", "--until", "tomorrow"
    )
    assert "there is no provider" in refused(environment, "condition", "unset", "nobody", "A")


@pytest.mark.slow
def test_load_with_prune_keeps_conditions(environment):
    name, uuid = a_root(environment)
    succeed(environment, "condition", "set", name, "A")
    assert call(environment, "load", str(EXAMPLE), "--prune").returncode == 0
    assert "condition A" in succeed(environment, "tree", uuid)
