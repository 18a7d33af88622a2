# SPDX-License-Identifier: Apache-2.0
"""The table of budgets of operations, and the helpers of the tests that measure them."""

import gc
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

BUDGETS = yaml.safe_load(Path(__file__).with_name("budgets.yaml").read_text())


def rows_with(column):
    """Parametrize a test by the rows that bound something: the name of the operation, and the bound."""
    rows = [
        pytest.param(name, row[column], id=name, marks=[pytest.mark.slow] if "slow" in row else [])
        for name, row in BUDGETS.items()
        if column in row
    ]
    return pytest.mark.parametrize(("name", "most"), rows)


@contextmanager
def traced_memory():
    """Trace allocations without the collector; yield a function that returns the bytes that are kept, and their peak."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield lambda: tuple(count - before for count in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
        gc.enable()
        gc.collect()
