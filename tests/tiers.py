# SPDX-License-Identifier: Apache-2.0
"""The tiers of the suite: their tests, and the number of examples of their properties.

`quick` needs only Python. `ci` adds tests that are marked `slow` or request software of the machine. `all` adds tests
marked `long`.
"""

import os

from hypothesis import HealthCheck, settings

TIERS = ("quick", "ci", "all")

_EXAMPLES = {"quick": 25, "ci": 100, "all": 400}
"""Examples of a property without its own number."""

_WORLDS = {"quick": "6", "ci": "25"}
"""Examples of properties of random worlds; in the tier `all`, each property has its own number.

The environment variable TREECLAIM_PROPERTY_EXAMPLES overrides the number.
"""


def load_profile(tier: str) -> None:
    """Set the number of examples of a tier.

    Examples have no deadline, because their duration depends mostly on the machine.
    """
    settings.register_profile(tier, deadline=None, max_examples=_EXAMPLES[tier])
    settings.load_profile(tier)
    if tier in _WORLDS:
        os.environ.setdefault("TREECLAIM_PROPERTY_EXAMPLES", _WORLDS[tier])


def examples(usual: int) -> int:
    """Scale the number of examples of the tier `ci` to the present tier."""
    return max(1, usual * settings.default.max_examples // _EXAMPLES["ci"])


def count_worlds(usual: int) -> int:
    """Return the number of random worlds for a property with this usual number."""
    return int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", usual))


def many_worlds(usual: int, share: int = 1) -> settings:
    """Return settings for the worlds divided by `share`, without limits of size and time."""
    return settings(
        max_examples=max(count_worlds(usual) // share, 1),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
