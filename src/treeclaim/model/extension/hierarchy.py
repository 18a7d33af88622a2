# SPDX-License-Identifier: Apache-2.0
"""The places of providers after a batch (contract page 99, section 8): no I/O.

The whole call is judged by its end, so the order of its entries does not matter, and neither does
whether it passes through a circle on the way.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass

from treeclaim.model.errors import InvalidParentError, InventoryInUseError, TreeclaimError
from treeclaim.model.extension.errors import ConsumptionError
from treeclaim.model.provider import Consumption

_NO_PARENT = "parent provider UUID does not exist."
_OWN_PARENT = "parent provider UUID cannot be same as UUID."
_LOOP = "creating loop in the provider tree is not allowed."
_REPARENTING = "re-parenting a provider is not currently allowed."
_UNPARENTING = "un-parenting a provider is not currently allowed."


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Parents as they are to be.

    Attributes:
        before: Parent by uuid, of all providers in the trees that are changed; None for a root.
        wanted: Parent by uuid, of those that get another one or are new.
    """

    before: Mapping[str, str | None]
    wanted: Mapping[str, str | None]

    def parent(self, uuid: str) -> str | None:
        """Return the parent in the end; None for a root, and above the trees that are known."""
        return self.wanted[uuid] if uuid in self.wanted else self.before.get(uuid)

    def on_circles(self) -> set[str]:
        """Return the providers that would be above themselves."""
        circle_uuids: set[str] = set()
        visited: set[str] = set()
        for start in self.wanted:
            path: dict[str, int] = {}
            uuid: str | None = start
            while uuid is not None and uuid not in visited:
                visited.add(uuid)
                path[uuid] = len(path)
                uuid = self.parent(uuid)
            if uuid is not None and uuid in path:
                circle_uuids.update(list(path)[path[uuid] :])
        return circle_uuids

    def faults(
        self, new: Collection[str], existing: Container[str], *, may_reparent: bool = True
    ) -> dict[str, str]:
        """Return the faults of parents, by child.

        Args:
            new: UUIDs of providers that the call creates.
            existing: UUIDs of the possible parents that exist, or that the call creates.
            may_reparent: Whether a provider with a parent may get another one, or none.
        """
        fault_by_child = {
            uuid: _NO_PARENT
            for uuid, parent in self.wanted.items()
            if parent is not None and parent not in existing
        }
        fault_by_child |= {uuid: _OWN_PARENT for uuid in new if self.wanted[uuid] == uuid}
        if not may_reparent:
            fault_by_child |= {
                uuid: _UNPARENTING if parent is None else _REPARENTING
                for uuid, parent in self.wanted.items()
                if uuid not in fault_by_child and self.before.get(uuid) is not None
            }
        return fault_by_child | dict.fromkeys(
            self.on_circles() & self.wanted.keys() - fault_by_child.keys(), _LOOP
        )

    def tops(self, uuids: Collection[str]) -> dict[str, str]:
        """Return the highest known provider above each, itself where there is none.

        A cycle, which only old data have, has no highest: any of its providers is returned.
        """
        top_by_uuid: dict[str, str] = {}
        for start in uuids:
            path: list[str] = []
            uuid: str | None = start
            while uuid is not None and uuid not in top_by_uuid:
                path.append(uuid)
                top_by_uuid[uuid] = uuid
                uuid = self.parent(uuid)
            top = path[-1] if uuid is None else top_by_uuid[uuid]
            top_by_uuid.update(dict.fromkeys(path, top))
        return top_by_uuid

    def waves(self, new: Collection[str]) -> list[Sequence[str]]:
        """Return new providers such that all new ones above one are in a former wave.

        There must be no circles.
        """
        heights: dict[str, int] = {}
        waves: defaultdict[int, list[str]] = defaultdict(list)
        for start in new:
            path: list[str] = []
            uuid: str | None = start
            while uuid is not None and uuid not in heights:
                path.append(uuid)
                uuid = self.parent(uuid)
            height = 0 if uuid is None else heights[uuid]
            for above in reversed(path):
                height += above in new
                heights[above] = height
            waves[heights[start]].append(start)
        return [waves[height] for height in sorted(waves)]

    def moved_along(self, moved: Collection[str]) -> set[str]:
        """Return the providers that are, or were, among those that are moved, or below one."""
        along: set[str] = set()
        for parent_of in (self.before.get, self.parent):
            children: defaultdict[str | None, list[str]] = defaultdict(list)
            for uuid in {**self.before, **self.wanted}:
                children[parent_of(uuid)].append(uuid)
            waiting, reached = [*moved], set[str]()
            while waiting:
                uuid = waiting.pop()
                # Old data may have circles.
                if uuid not in reached:
                    reached.add(uuid)
                    waiting += children[uuid]
            along |= reached & self.before.keys()
        return along


def is_at_or_above(parents: Mapping[int, int | None], ancestor: int, provider: int) -> bool:
    """Return whether a provider is another one or one of its ancestors.

    Args:
        parents: Parents by id of the lower provider and of those above it.
        ancestor: Id of the upper provider.
        provider: Id of the lower provider.
    """
    at: int | None = provider
    while at is not None and at != ancestor:
        at = parents.get(at)
    return at is not None


def find_consumption_fault(
    by: tuple[str, str],
    consumes: Consumption,
    *,
    is_written: bool,
    is_missing: bool,
    consumes_itself: bool,
    is_at_or_above: bool,
) -> TreeclaimError | None:
    """Check one entry of `consumes` in the final state of a write (contract page 102, section 2.1).

    Args:
        by: Provider UUID and class of the consuming inventory.
        consumes: The consumed inventory.
        is_written: Whether the write states what the inventory consumes.
        is_missing: Whether the consumed inventory does not exist.
        consumes_itself: Whether the consumed inventory consumes others.
        is_at_or_above: Whether it is of the same provider or of an ancestor.
    """
    if is_missing:
        if is_written:
            return ConsumptionError("is of no inventory", [consumes])
        return InventoryInUseError(consumes.provider, [consumes.resource_class], 0, by=by)
    if consumes_itself:
        return ConsumptionError("is of an inventory that consumes others", [consumes])
    if is_at_or_above:
        return None
    if is_written:
        return ConsumptionError("is of neither the same provider nor an ancestor", [consumes])
    return InvalidParentError(
        f"it would separate the inventory {by[1]} of {by[0]} from {consumes.resource_class} of "
        f"{consumes.provider}, which it consumes."
    )
