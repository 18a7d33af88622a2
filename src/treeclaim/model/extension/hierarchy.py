# SPDX-License-Identifier: Apache-2.0
"""The parents of providers after a batch (contract page 99, section 8); no I/O.

Only the state after the call is checked, so neither the order of entries nor intermediate cycles matter.
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
    """The parents of providers before and after a batch.

    Attributes:
        former_parents: Parents of all existing providers in the changed trees, by uuid; None for a root.
        new_parents: Parents of all new and moved providers, by uuid.
    """

    former_parents: Mapping[str, str | None]
    new_parents: Mapping[str, str | None]

    def parent(self, uuid: str) -> str | None:
        """Return the parent after the batch; None for a root and an unknown provider."""
        return (
            self.new_parents[uuid] if uuid in self.new_parents else self.former_parents.get(uuid)
        )

    def _find_cycles(self) -> set[str]:
        """Return the providers that would be their own ancestors."""
        cycle_uuids: set[str] = set()
        visited_uuids: set[str] = set()
        for start in self.new_parents:
            path: dict[str, int] = {}
            uuid: str | None = start
            while uuid is not None and uuid not in visited_uuids:
                visited_uuids.add(uuid)
                path[uuid] = len(path)
                uuid = self.parent(uuid)
            if uuid is not None and uuid in path:
                cycle_uuids.update(list(path)[path[uuid] :])
        return cycle_uuids

    def find_faults(
        self,
        new_uuids: Collection[str],
        existing_parents: Container[str],
        *,
        may_reparent: bool = True,
    ) -> dict[str, str]:
        """Return the faults of parents, by child.

        Args:
            new_uuids: UUIDs of the providers that the call creates.
            existing_parents: UUIDs of the new parents that exist or that the call creates.
            may_reparent: Whether the parent of a provider may be changed or removed.
        """
        fault_by_child = {
            uuid: _NO_PARENT
            for uuid, parent in self.new_parents.items()
            if parent is not None and parent not in existing_parents
        }
        fault_by_child |= {
            uuid: _OWN_PARENT for uuid in new_uuids if self.new_parents[uuid] == uuid
        }
        if not may_reparent:
            fault_by_child |= {
                uuid: _UNPARENTING if parent is None else _REPARENTING
                for uuid, parent in self.new_parents.items()
                if uuid not in fault_by_child and self.former_parents.get(uuid) is not None
            }
        return fault_by_child | dict.fromkeys(
            self._find_cycles() & self.new_parents.keys() - fault_by_child.keys(), _LOOP
        )

    def find_tops(self, uuids: Collection[str]) -> dict[str, str]:
        """Return the topmost known ancestor of each provider, or the provider itself.

        In a cycle, which old data may contain, any provider is returned.
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

    def sort_into_waves(self, new_uuids: Collection[str]) -> list[Sequence[str]]:
        """Return new providers in waves, such that new ancestors are in earlier waves; there must be no cycles."""
        heights: dict[str, int] = {}
        waves: defaultdict[int, list[str]] = defaultdict(list)
        for start in new_uuids:
            path: list[str] = []
            uuid: str | None = start
            while uuid is not None and uuid not in heights:
                path.append(uuid)
                uuid = self.parent(uuid)
            height = 0 if uuid is None else heights[uuid]
            for ancestor in reversed(path):
                height += ancestor in new_uuids
                heights[ancestor] = height
            waves[heights[start]].append(start)
        return [waves[height] for height in sorted(waves)]

    def find_moved(self, roots: Collection[str]) -> set[str]:
        """Return the existing providers in the subtrees of moved providers, before or after the batch."""
        moved_uuids: set[str] = set()
        for parent_of in (self.former_parents.get, self.parent):
            children: defaultdict[str | None, list[str]] = defaultdict(list)
            for uuid in {**self.former_parents, **self.new_parents}:
                children[parent_of(uuid)].append(uuid)
            pending_uuids, reached_uuids = [*roots], set[str]()
            while pending_uuids:
                uuid = pending_uuids.pop()
                # Old data may contain cycles.
                if uuid not in reached_uuids:
                    reached_uuids.add(uuid)
                    pending_uuids += children[uuid]
            moved_uuids |= reached_uuids & self.former_parents.keys()
        return moved_uuids


def is_at_or_above(parents: Mapping[int, int | None], ancestor: int, provider: int) -> bool:
    """Return whether `ancestor` is a provider itself, or an ancestor of it, by the ids of parents."""
    current: int | None = provider
    while current is not None and current != ancestor:
        current = parents.get(current)
    return current is not None


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
        consumes: The entry.
        is_written: Whether the write sets the consumption of the inventory.
        is_missing: Whether the consumed inventory does not exist.
        consumes_itself: Whether the consumed inventory consumes others.
        is_at_or_above: Whether the consumed inventory is of the same provider or of an ancestor.
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
