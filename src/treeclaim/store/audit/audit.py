# SPDX-License-Identifier: Apache-2.0
"""All findings of an audit, in one snapshot."""

from collections.abc import Callable, Mapping, Sequence

from treeclaim.model.extension.audit import FindingKind, Findings, Living
from treeclaim.store.audit import allocations, conditions, holds, leftovers, trees
from treeclaim.store.database.transactions import ReadTransaction

_FINDERS: Mapping[FindingKind, Callable[[ReadTransaction, int], Findings]] = {
    FindingKind.OVER_CAPACITY: allocations.over_capacity,
    FindingKind.AGAINST_UNITS: allocations.against_units,
    FindingKind.WITHOUT_INVENTORY: allocations.without_inventory,
    FindingKind.WITHOUT_PROVIDER: leftovers.without_provider,
    FindingKind.WITHOUT_CONSUMER: allocations.without_consumer,
    FindingKind.EMPTY_CONSUMER: allocations.empty_consumer,
    FindingKind.BROKEN_ROOT: trees.broken_root,
    FindingKind.BROKEN_PARENT: trees.broken_parent,
    FindingKind.IN_MANY_TREES: trees.in_many_trees,
    FindingKind.SAME_HOST: trees.same_host,
    FindingKind.UNUSED_AGGREGATE: leftovers.unused_aggregate,
    FindingKind.UNUSED_TRAIT: leftovers.unused_trait,
    FindingKind.UNUSED_CLASS: leftovers.unused_class,
    FindingKind.EMPTY_TREE: trees.empty_tree,
    FindingKind.EXPIRED_HOLD: holds.expired_hold,
    FindingKind.BROKEN_HOLD: holds.broken_hold,
    FindingKind.BROKEN_DRAW: holds.broken_draw,
    FindingKind.MUST_LEAVE: conditions.must_leave,
}


def findings(
    transaction: ReadTransaction,
    kinds: Sequence[FindingKind],
    limit: int,
    living: Living | None = None,
) -> dict[FindingKind, Findings]:
    """Look for findings of some kinds, in the order of the kinds.

    Args:
        transaction: The snapshot.
        kinds: What to look for; `ORPHANED` needs `living`.
        limit: Most items of each kind.
        living: The living consumers.
    """
    # It looks at everything.
    transaction.extend_timeouts()
    found = {kind: _FINDERS[kind](transaction, limit) for kind in kinds if kind in _FINDERS}
    if FindingKind.ORPHANED in kinds and living is not None:
        found[FindingKind.ORPHANED] = allocations.orphaned(transaction, limit, living)
    return found
