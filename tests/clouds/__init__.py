# SPDX-License-Identifier: Apache-2.0
"""Worlds to measure in, and how they get into a service."""

from tests.clouds.world import (
    SHARING,
    BenchProvider,
    World,
    WorldMaker,
    flat,
    nested,
    sharing,
    wide,
)

__all__ = [
    "SHARING",
    "BenchProvider",
    "World",
    "WorldMaker",
    "flat",
    "nested",
    "sharing",
    "wide",
]
