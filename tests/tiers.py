# SPDX-License-Identifier: Apache-2.0
"""The tiers of the suite: which tests each runs, and how many examples its properties try.

`quick` needs Python alone. `ci` adds tests marked `slow` and those that request software of the machine. `all` adds
the tests marked `long`.
"""

import os

from hypothesis import HealthCheck, settings

TIERS = ("quick", "ci", "all")

_EXAMPLES = {"quick": 25, "ci": 100, "all": 400}
"""Examples of a property that sets no number of its own."""

_WORLDS = {"quick": "6", "ci": "25"}
"""Examples of the properties of random worlds, which set their own usual numbers.

TREECLAIM_PROPERTY_EXAMPLES=N in the environment has each of them try N worlds.
"""


def load_profile(tier: str) -> None:
    """Have properties try as many examples as a tier does.

    No example has a deadline: how long it takes depends more on the machine than on the service.
    """
    settings.register_profile(tier, deadline=None, max_examples=_EXAMPLES[tier])
    settings.load_profile(tier)
    if tier in _WORLDS:
        os.environ.setdefault("TREECLAIM_PROPERTY_EXAMPLES", _WORLDS[tier])


def examples(usual: int) -> int:
    """Return how many examples a property tries whose `ci` run tries so many."""
    return max(1, usual * settings.default.max_examples // _EXAMPLES["ci"])


def count_worlds(usual: int) -> int:
    """Return how many random worlds a property tries whose usual number is this."""
    return int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", usual))


def many_worlds(usual: int, share: int = 1) -> settings:
    """Return settings that try this share of the worlds, however large they are and however long they take."""
    return settings(
        max_examples=max(count_worlds(usual) // share, 1),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
