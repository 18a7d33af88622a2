# SPDX-License-Identifier: Apache-2.0
"""Consumption of inventories, as commands load and show it (contract page 102, section 2)."""

import json

import pytest

from tests.cli.services import claim, served, succeed

FILE = """
providers:
  - name: host
    children:
      - name: gpu
        mig: a30
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment of commands that talk to a service with a card."""
    folder = tmp_path_factory.mktemp("service")
    (folder / "card.yaml").write_text(FILE)
    with served(folder) as found:
        succeed(found, "load", str(folder / "card.yaml"))
        yield found, folder


def test_dry_run_shows_changes_of_consumption(environment):
    found, folder = environment
    changed = folder / "changed.yaml"
    changed.write_text(
        "providers: [{name: gpu_4g.24gb_at0, inventories: {CUSTOM_MIG_4G_24GB: {total: 1, "
        "consumes: [{provider: gpu, resource_class: CUSTOM_MIG_MEMORY_SLICE_0, amount: 1}]}}}]"
    )
    shown = succeed(found, "load", "--dry-run", str(changed))
    assert "inventories.CUSTOM_MIG_4G_24GB.consumes: 1 CUSTOM_MIG_" in shown
    assert "→ 1 CUSTOM_MIG_MEMORY_SLICE_0 of" in shown


def test_tree_shows_consuming_inventories(environment):
    found, _ = environment
    consumer = claim(found, "resources=CUSTOM_MIG_2G_12GB:1", "--project", "p")
    shown = succeed(found, "tree", "host")
    assert "1 consumed by CUSTOM_MIG_2G_12GB of gpu_2g.12gb_at0" in shown
    documents = json.loads(succeed(found, "tree", "host", "-f", "json"))
    text = json.dumps(documents)
    assert '"consumed_by": [{"provider": "gpu_2g.12gb_at0"' in text
    succeed(found, "release", consumer)
    assert "consumed by" not in succeed(found, "tree", "host")
