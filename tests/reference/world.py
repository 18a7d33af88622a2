# SPDX-License-Identifier: Apache-2.0
"""Worlds and requests as plain values; nothing here comes from the service's own code."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

_NAMESPACE = uuid.UUID(int=7)


@lru_cache(maxsize=4096)
def uuid_of(name):
    """The uuid that stands for a provider's or an aggregate's name."""
    return str(uuid.uuid5(_NAMESPACE, name))


@dataclass(frozen=True)
class Stock:
    """An inventory with its used amount."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2147483647
    step_size: int = 1
    allocation_ratio: float = 1.0
    used: int = 0


@dataclass(frozen=True)
class Provider:
    """A resource provider; names stand for uuids."""

    name: str
    parent: str | None = None
    stock: dict[str, Stock] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    attributes: dict[str, bool | int | str] = field(default_factory=dict)
    consumes: dict[str, tuple[tuple[str, str, int], ...]] = field(default_factory=dict)
    """By class: provider, class and amount that each unit consumes."""
    conditions: frozenset[str] = frozenset()

    @property
    def uuid(self):
        """The uuid that the name stands for."""
        return uuid_of(self.name)

    def __str__(self):
        stock = ", ".join(f"{name}: {inventory}" for name, inventory in self.stock.items())
        return (
            f"{self.name} (in {self.parent}): {{{stock}}} traits{sorted(self.traits)} "
            f"aggs{sorted(self.aggregates)} {self.attributes} {self.consumes or ''} "
            f"conditions{sorted(self.conditions)}"
        )


@dataclass(frozen=True)
class Group:
    """A request group."""

    suffix: str = ""
    resources: dict[str, int] = field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    in_tree: tuple[str, ...] = ()
    in_subtree: tuple[str, ...] = ()
    not_in_tree: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    tolerates: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Request:
    """A request for candidates.

    A same_subtree constraint is a pair of suffixes: the plain ones and those with "!". Terms of
    the order are (name, arguments, weight); preferences (suffix, trait, is wanted, weight); comparisons
    of attributes (name, suffixes, is the same).
    """

    groups: tuple[Group, ...]
    root: Group = Group()
    same_subtree: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    isolated: frozenset[str] = frozenset()
    values: tuple[tuple[str, tuple[str, ...], bool], ...] = ()
    can_split: frozenset[str] = frozenset()
    split_policy: str = "pack"
    nested: bool = True
    order: tuple[tuple[str, tuple[str, ...], int], ...] = ()
    preferred: tuple[tuple[str, str, bool, int], ...] = ()


@dataclass(frozen=True)
class World:
    """All providers."""

    providers: tuple[Provider, ...]

    def using(self, amount_of: Callable[[str, str, int], int]) -> "World":
        """Return the world in which other amounts are used.

        Args:
            amount_of: Returns the new used amount, by provider, class and the present amount.
        """
        return World(
            tuple(
                replace(
                    provider,
                    stock={
                        name: replace(stock, used=amount_of(provider.name, name, stock.used))
                        for name, stock in provider.stock.items()
                    },
                )
                for provider in self.providers
            )
        )

    def __str__(self):
        return "\n".join(map(str, self.providers))
