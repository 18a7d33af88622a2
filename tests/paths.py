# SPDX-License-Identifier: Apache-2.0
"""Folders of files that tests read, wherever a test itself is."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "topology.yaml"
