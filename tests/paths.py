# SPDX-License-Identifier: Apache-2.0
"""Where the files are that tests read, wherever a test itself stands."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "topology.yaml"
