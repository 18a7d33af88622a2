# SPDX-License-Identifier: Apache-2.0
"""What operations may cost: one table, and a test for each way to measure."""

from pathlib import Path

import pytest
import yaml

BUDGETS = yaml.safe_load(Path(__file__).with_name("budgets.yaml").read_text())


def rows_with(column):
    """Parametrize a test by the rows that bound something: the name of the operation, and the budget."""
    rows = [pytest.param(name, row, id=name) for name, row in BUDGETS.items() if column in row]
    return pytest.mark.parametrize(("name", "budget"), rows)
