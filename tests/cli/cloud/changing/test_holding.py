# SPDX-License-Identifier: Apache-2.0
"""`hold`, `holds`, and `claim` and `place` with `--from-hold`, as a person runs them (page 100)."""

import json
import re

import pytest

from tests.cli.processes import call
from tests.cli.services import claim, refused, served, succeed
from tests.paths import EXAMPLE

UNTIL = "2099-12-01T09:00:00+01:00"


@pytest.fixture
def environment(tmp_path):
    """The environment of commands that talk to a service with the example topology."""
    with served(tmp_path) as environment:
        assert call(environment, "load", str(EXAMPLE)).returncode == 0
        yield environment


def hold(environment, *arguments):
    shown = succeed(environment, "hold", "create", *arguments, "-f", "json")
    return [row["consumer"] for row in json.loads(shown)["placements"]]


@pytest.mark.slow
def test_hold_is_created_and_listed_with_its_terms(environment):
    (uuid,) = hold(
        environment,
        *("resources=VCPU:4", "--until", UNTIL, "--returns", "--note", "rack 7"),
        *("--project", "p1", "--drawable-by", "p2", "--drawable-by", "p3"),
    )
    shown = succeed(environment, "hold", "list")
    (document,) = json.loads(succeed(environment, "hold", "list", "-f", "json"))["holds"]
    assert document["uuid"] == uuid
    assert document["hold"] == {
        "until": "2099-12-01T08:00:00Z",
        "returns": True,
        "projects": ["p2", "p3"],
        "note": "rack 7",
        "drawn": {},
    }
    assert uuid in shown
    tree = succeed(environment, "tree")
    assert "4 held for p1 until 2099-12-01T08:00:00Z: rack 7" in tree
    assert "▒" in tree
    host = next(iter(document["allocations"]))
    (named,) = json.loads(succeed(environment, "tree", host, "-f", "json"))
    parts = [part for held in stocks(named) for part in held]
    assert [(part["hold"], part["amount"]) for part in parts] == [(uuid, 4)]
    assert "Nothing is held" in succeed(environment, "hold", "list", "--project", "p2")
    assert uuid in json.dumps(
        succeed(environment, "hold", "list", "--drawable-by", "p2", "-f", "json")
    )
    host = document["allocations"].popitem()[0]
    assert uuid in succeed(environment, "hold", "list", "--in-tree", host, "-f", "json")
    assert "Nothing is held" in succeed(
        environment, "hold", "list", "--until-before", "2030-01-01T00:00:00Z"
    )


def stocks(provider):
    """The held amounts of each inventory of a tree."""
    for stock in provider["inventories"].values():
        yield stock.get("held", [])
    for child in provider["children"]:
        yield from stocks(child)


@pytest.mark.slow
def test_holds_are_created_all_or_none(environment):
    shown = succeed(
        environment, "hold", "create", "resources=VCPU:1", "--amount", "3", "--dry-run"
    )
    assert "3 would be placed" in shown
    assert "Nothing is held" in succeed(environment, "hold", "list")
    assert len(hold(environment, "resources=VCPU:1", "--amount", "3")) == 3
    text = refused(environment, "hold", "create", "resources=VCPU:99999")
    assert "There is no place for the requested holds (1)" in text
    assert "treeclaim explain resources=VCPU:99999" in text


@pytest.mark.slow
def test_claims_draw_from_holds_and_return_to_them(environment):
    uuids = hold(environment, "resources=VGPU:1", "--amount", "2", "--returns")
    from_holds = [word for uuid in uuids for word in ("--from-hold", uuid)]
    consumer = claim(environment, *from_holds, "resources=VGPU:1", "--project", "treeclaim")
    holds = json.loads(succeed(environment, "hold", "list", "-f", "json"))["holds"]
    assert [bool(hold["hold"]["drawn"]) for hold in holds].count(True) == 1
    succeed(environment, "release", consumer)
    holds = json.loads(succeed(environment, "hold", "list", "-f", "json"))["holds"]
    assert not any(hold["hold"]["drawn"] for hold in holds)
    shown = succeed(environment, "place", "resources=VGPU:1", "--amount", "2", *from_holds)
    assert "2 placed" in shown
    holds = json.loads(succeed(environment, "hold", "list", "-f", "json"))["holds"]
    assert all(hold["hold"]["drawn"] for hold in holds)


@pytest.mark.slow
def test_draw_without_permission_is_refused(environment):
    (uuid,) = hold(environment, "resources=VCPU:1", "--project", "p1")
    message = refused(environment, "place", "resources=VCPU:1", "--from-hold", uuid)
    assert re.search("treeclaim.hold", message)
    message = refused(environment, "claim", "resources=VCPU:1", "--from-hold", uuid)
    assert re.search("treeclaim.hold", message)
    assert "/allocations/" not in message
    refused(environment, "place", "resources=VCPU:1", "--from-hold", "no-uuid")
