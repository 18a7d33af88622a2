# SPDX-License-Identifier: Apache-2.0
"""Foreign servers run where everything is wanted."""

import pytest


def pytest_collection_modifyitems(config, items):
    """Leave the long ones to a run that wants all."""
    if config.getoption("--databases") == "all":
        return
    skip = pytest.mark.skip(reason="slow: runs with --databases=all")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
