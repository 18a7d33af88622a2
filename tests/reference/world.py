# SPDX-License-Identifier: Apache-2.0
"""Worlds and requests as plain values; nothing here comes from the service's own code."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stock:
    """An inventory with what is used of it."""

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

    def __str__(self):
        stock = ", ".join(f"{name}: {one}" for name, one in self.stock.items())
        return (
            f"{self.name} (in {self.parent}): {{{stock}}} traits{sorted(self.traits)} "
            f"aggs{sorted(self.aggregates)}"
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
    in_tree: str | None = None


@dataclass(frozen=True)
class Request:
    """A request for candidates."""

    groups: tuple[Group, ...]
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    same_subtree: tuple[tuple[str, ...], ...] = ()
    isolate: bool = False
    nested: bool = True


@dataclass(frozen=True)
class World:
    """All providers."""

    providers: tuple[Provider, ...]

    def __str__(self):
        return "\n".join(map(str, self.providers))
