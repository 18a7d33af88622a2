# SPDX-License-Identifier: Apache-2.0
"""Consumption of inventories, as commands load and show it (contract page 102, section 2)."""

from tests.cli.services import served, succeed

CARD = "providers: [{name: host, children: [{name: gpu, mig: a30}]}]"
CHANGED = """
providers:
  - name: gpu_4g.24gb_at0
    inventories:
      CUSTOM_MIG_4G_24GB:
        total: 1
        consumes: [{provider: gpu, resource_class: CUSTOM_MIG_MEMORY_SLICE_0, amount: 1}]
"""


def test_dry_run_shows_changes_of_consumption(tmp_path):
    file = tmp_path / "card.yaml"
    file.write_text(CARD)
    with served(tmp_path) as environment:
        succeed(environment, "load", str(file))
        file.write_text(CHANGED)
        shown = succeed(environment, "load", "--dry-run", str(file))
    assert "inventories.CUSTOM_MIG_4G_24GB.consumes: 1 CUSTOM_MIG_" in shown
    assert "→ 1 CUSTOM_MIG_MEMORY_SLICE_0 of" in shown
