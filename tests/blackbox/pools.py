# SPDX-License-Identifier: Apache-2.0
"""The names and ids that random requests are made of, and what is probably known by them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from random import Random

STANDARD_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF")
CUSTOM_CLASSES = ("CUSTOM_ALPHA", "CUSTOM_BETA", "CUSTOM_GAMMA")
STANDARD_TRAITS = ("HW_CPU_X86_AVX", "HW_NUMA_ROOT", "STORAGE_DISK_SSD")
SHARING = "MISC_SHARES_VIA_AGGREGATE"
CUSTOM_TRAITS = ("CUSTOM_GOLD", "CUSTOM_SILVER", "CUSTOM_LEAD")
UNKNOWN_CLASS = "CUSTOM_NOT_THERE"
UNKNOWN_TRAIT = "CUSTOM_NOT_THERE"
AGGREGATES = tuple(f"bbbbbbbb-0000-4000-8000-{number:012d}" for number in range(1, 6))
CONSUMERS = tuple(f"cccccccc-0000-4000-8000-{number:012d}" for number in range(1, 13))
UNKNOWN_UUID = "99999999-0000-4000-8000-000000000009"
PROJECTS = ("red", "blue")
USERS = ("ann", "bob")
TYPES = ("INSTANCE", "MIGRATION")
NEWEST = 39


@dataclass(slots=True)
class Pool:
    """A world as its author believes it to be: a guess that makes most requests sensible."""

    random: Random
    providers: list[str] = field(default_factory=list)
    inventories: dict[str, set[str]] = field(default_factory=dict)
    names: int = 0

    def new_uuid(self) -> str:
        """A uuid that is new, and the same for the same seed."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def new_name(self) -> str:
        """A provider name that was never given."""
        self.names += 1
        return f"provider {self.names}"

    def some_name(self) -> str:
        """A provider name that may have been given."""
        return f"provider {self.random.randint(1, max(1, self.names))}"

    def chance(self, probability: float) -> bool:
        """True with a probability from 0 to 1."""
        return self.random.random() < probability

    def provider(self) -> str:
        """The id of some provider, rarely of none."""
        if not self.providers or self.chance(0.03):
            return UNKNOWN_UUID
        return self.random.choice(self.providers)

    def consumer(self) -> str:
        """The uuid of some consumer."""
        return self.random.choice(CONSUMERS)

    def resource_class(self) -> str:
        """Return a resource class, rarely one that does not exist."""
        if self.chance(0.02):
            return UNKNOWN_CLASS
        return self.random.choice(STANDARD_CLASSES + CUSTOM_CLASSES)

    def trait(self) -> str:
        """Return a trait, rarely one that does not exist."""
        if self.chance(0.02):
            return UNKNOWN_TRAIT
        return self.random.choice((*STANDARD_TRAITS, *CUSTOM_TRAITS, SHARING))

    def aggregate(self) -> str:
        """The uuid of some aggregate."""
        return self.random.choice(AGGREGATES)

    def some(self, values: tuple[str, ...], most: int) -> list[str]:
        """Different ones of some values, from none to `most`."""
        return self.random.sample(values, self.random.randint(0, min(most, len(values))))

    def version(self, since: int = 0) -> int:
        """A minor version, often the newest, rarely one that does not know the operation yet."""
        if self.chance(0.5):
            return NEWEST
        if self.chance(0.05):
            return self.random.randint(0, NEWEST)
        return self.random.randint(since, NEWEST)
