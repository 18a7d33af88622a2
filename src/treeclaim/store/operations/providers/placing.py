# SPDX-License-Identifier: Apache-2.0
"""Creates, renames and moves providers, judged by the final state.

A URL of one provider is a batch of one (contract page 20, sections 3 and 5).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from treeclaim.model.claim import Omission
from treeclaim.model.errors import InvalidParentError
from treeclaim.model.extension.batches.batch import EntryFault
from treeclaim.model.extension.batches.hierarchy import Hierarchy
from treeclaim.model.parts import Part
from treeclaim.store.database.compiled import CompiledStatement, bind_list, compile_insert
from treeclaim.store.database.systems import system_of
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.locks.provider_rows import lock_providers, lock_shapes
from treeclaim.store.operations.providers.part_writer import Target, WriteRules
from treeclaim.store.schema.tables import (
    attributes,
    conditions,
    consumption,
    resource_providers,
)

_INSERT = compile_insert(resource_providers)
_OWN_ROOT = CompiledStatement(
    sa.update(resource_providers)
    .where(
        resource_providers.c.uuid.in_(bind_list("uuids")),
        resource_providers.c.root_provider_id.is_(None),
    )
    .values(root_provider_id=resource_providers.c.id)
)
_ROWS_BY = {
    column.name: CompiledStatement(
        sa.select(
            resource_providers.c.id,
            resource_providers.c.uuid,
            resource_providers.c.parent_provider_id,
            sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id).label(
                "root"
            ),
        ).where(column.in_(bind_list("wanted")))
    )
    for column in (
        resource_providers.c.id,
        resource_providers.c.uuid,
        resource_providers.c.root_provider_id,
    )
}
_WITHOUT_NAME = (
    sa.update(resource_providers)
    .where(resource_providers.c.id.in_(bind_list("ids")))
    .values(name=None)
)
_SET_ROOT = (
    sa.update(resource_providers)
    .where(resource_providers.c.id.in_(bind_list("ids")))
    .values(root_provider_id=sa.bindparam("new_root"))
)
_UPDATE_NAME_AND_PARENT = CompiledStatement(
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("provider_id"))
    .values(
        name=sa.bindparam("new_name"),
        parent_provider_id=sa.bindparam("new_parent"),
        updated_at=sa.bindparam("at"),
    )
)
_DELETE_LEFT = [
    sa.delete(column.table).where(column.in_(bind_list("ids")))
    for column in (
        attributes.c.resource_provider_id,
        conditions.c.resource_provider_id,
        consumption.c.resource_provider_id,
        consumption.c.consumed_provider_id,
    )
]


@dataclass(slots=True)
class ProviderPlaces:
    """The present places of providers, and those after the call.

    Attributes:
        wanted: Parent by UUID, of providers that are new or get another parent.
        ids: Ids by UUID, of all known providers.
        roots: Present root ids by UUID.
        before: Parent by UUID, of all providers in the trees that are changed.
    """

    wanted: dict[str, str | None]
    ids: dict[str, int] = field(default_factory=dict)
    roots: dict[str, int] = field(default_factory=dict)
    before: dict[str, str | None] = field(default_factory=dict)

    def note(self, rows: Iterable[Any]) -> None:
        """Note rows of providers."""
        for row in rows:
            self.ids[row.uuid] = row.id
            self.roots[row.uuid] = row.root

    @property
    def hierarchy(self) -> Hierarchy:
        """Return what is above what."""
        return Hierarchy(self.before, self.wanted)


def judge_places(
    transaction: WriteTransaction,
    targets: Sequence[Target],
    rules: WriteRules,
    problems: list[EntryFault],
) -> ProviderPlaces:
    """Lock the trees that get or lose providers; add a problem for each parent that is against a rule.

    Raises:
        RetryTransactionError: if a tree has changed before it was locked.
    """
    places = ProviderPlaces(_wanted_parent(transaction, targets))
    if not places.wanted:
        return places
    existing_uuids = _lock_trees(transaction, targets, places)
    _read_trees(transaction, targets, places)
    new = [target.uuid for target in targets if target.is_new]
    faults = places.hierarchy.faults(new, existing_uuids, may_reparent=rules.may_reparent)
    problems += [
        EntryFault(target.index, InvalidParentError(faults[target.uuid]))
        for target in targets
        if target.uuid in faults
    ]
    return places


def write_places(
    transaction: WriteTransaction,
    targets: Sequence[Target],
    rules: WriteRules,
    places: ProviderPlaces,
) -> Collection[int]:
    """Create, rename and move providers whose places are sound; return the ids of all that moved."""
    existing = [target for target in targets if not target.is_new]
    _release_names(transaction, targets)
    if places.wanted:
        _create(transaction, {target.uuid: target for target in targets if target.is_new}, places)
    _rename_and_move(transaction, existing, rules, places)
    return _set_roots(transaction, existing, places) if places.wanted else ()


def find_uuids(transaction: ReadTransaction, ids: Collection[int]) -> dict[int, str]:
    """Return the UUIDs of those providers that exist, by id."""
    return {row.id: row.uuid for row in _rows(transaction, resource_providers.c.id, ids)}


def set_root(transaction: WriteTransaction, ids: Collection[int], root_id: int) -> None:
    """Write the root of some providers."""
    transaction.execute(_SET_ROOT, ids=sorted(ids), new_root=root_id)


def _wanted_parent(
    transaction: ReadTransaction, targets: Sequence[Target]
) -> dict[str, str | None]:
    """Return the parents of those that are new or get another one."""
    parent_by_uuid: dict[str, str | None] = {}
    named: list[tuple[Target, str | None]] = []
    for target in targets:
        parent = target.entry.parent
        if target.is_new:
            parent_by_uuid[target.uuid] = None if isinstance(parent, Omission) else parent
        elif not isinstance(parent, Omission):
            named.append((target, parent))
    ids = {target.row.parent_id for target, _ in named if target.row.parent_id is not None}
    uuids = find_uuids(transaction, ids)
    for target, parent in named:
        present = target.row.parent_id
        if parent != (None if present is None else uuids.get(present)):
            parent_by_uuid[target.uuid] = parent
    return parent_by_uuid


def _lock_trees(
    transaction: WriteTransaction, targets: Sequence[Target], places: ProviderPlaces
) -> set[str]:
    """Lock the trees that get or lose providers; return the possible parents: those that exist."""
    mine = {target.uuid for target in targets}
    parents = {parent for parent in places.wanted.values() if parent is not None}
    for target in targets:
        if not target.is_new:
            places.ids[target.uuid] = target.row.id
            places.roots[target.uuid] = target.row.root_id
    places.note(_rows(transaction, resource_providers.c.uuid, parents - mine))
    root_of_parent = {uuid: places.roots[uuid] for uuid in parents if uuid in places.roots}
    moved = {places.roots[uuid] for uuid in places.wanted if uuid in places.roots}
    if roots := {*root_of_parent.values(), *moved}:
        lock_shapes(transaction, roots)
    outside = root_of_parent.keys() - mine
    again = _rows(transaction, resource_providers.c.uuid, outside)
    if {row.uuid: row.root for row in again} != {uuid: root_of_parent[uuid] for uuid in outside}:
        raise RetryTransactionError
    return mine | root_of_parent.keys()


def _read_trees(
    transaction: ReadTransaction, targets: Sequence[Target], places: ProviderPlaces
) -> None:
    """Read the trees that lose providers; above a parent in another tree nothing changes."""
    roots = {
        target.row.root_id
        for target in targets
        if not target.is_new and target.uuid in places.wanted
    }
    rows = [
        *_rows(transaction, resource_providers.c.root_provider_id, roots),
        # A root that does not say so, from before roots were written.
        *_rows(transaction, resource_providers.c.id, roots),
    ]
    places.note(rows)
    uuids = {row.id: row.uuid for row in rows}
    for row in rows:
        above = row.parent_provider_id
        places.before[row.uuid] = None if above is None else uuids.get(above)


def _rows(
    transaction: ReadTransaction, column: sa.Column[Any], values: Collection[Any]
) -> list[Any]:
    """Return the rows of providers with exactly some values of a column."""
    return [
        row
        for chunk in chunks(sorted(values))
        for row in transaction.rows(_ROWS_BY[column.name], wanted=chunk)
        # Some collations match other spellings too.
        if column is not resource_providers.c.uuid or row.uuid in values
    ]


def _release_names(transaction: WriteTransaction, targets: Sequence[Target]) -> None:
    """Remove the names of providers that hand them over, so that no name exists twice meanwhile."""
    new_names = {target.entry.name for target in targets if target.entry.name is not None}
    handing = [
        target.row.id
        for target in targets
        if not target.is_new and target.is_renamed and target.row.name in new_names
    ]
    for ids in chunks(sorted(handing)):
        transaction.execute(_WITHOUT_NAME, ids=ids)


def _create(
    transaction: WriteTransaction, new: Mapping[str, Target], places: ProviderPlaces
) -> None:
    """Insert the new providers, those above before those below, and lock them."""
    tops = places.hierarchy.tops(new.keys())
    for uuids in places.hierarchy.waves(new):
        rows = [
            {
                "uuid": uuid,
                "name": new[uuid].entry.name,
                "generation": 0,
                "parent_provider_id": _id(places, places.wanted[uuid]),
                "root_provider_id": None if tops[uuid] == uuid else _root(places, tops[uuid]),
                "created_at": transaction.now,
            }
            for uuid in uuids
        ]
        transaction.change_each(_INSERT, rows)
        if roots := [uuid for uuid in uuids if tops[uuid] == uuid]:
            transaction.change(_OWN_ROOT, uuids=roots)
        row_by_uuid = {row.uuid: row for row in lock_providers(transaction, uuids)}
        if len(row_by_uuid) != len(uuids):
            raise RetryTransactionError
        for uuid in uuids:
            new[uuid].provider = row_by_uuid[uuid]
            places.ids[uuid] = row_by_uuid[uuid].id
        ids = [row.id for row in row_by_uuid.values()]
        _forget_former(transaction, ids)
        transaction.touch_providers(ids)


def _forget_former(transaction: WriteTransaction, ids: Collection[int]) -> None:
    """Delete rows of former providers that had the ids of new ones.

    Only programs that do not know attributes, consumption and conditions leave these behind.
    """
    if system_of(transaction.connection).gives_ids_again:
        for batch in chunks(sorted(ids)):
            for statement in _DELETE_LEFT:
                transaction.execute(statement, ids=batch)


def _id(places: ProviderPlaces, uuid: str | None) -> int | None:
    return None if uuid is None else places.ids[uuid]


def _root(places: ProviderPlaces, top: str) -> int:
    """Return the id of the root, of the highest known provider."""
    is_changed = top in places.before or top in places.wanted
    return places.ids[top] if is_changed else places.roots[top]


def _rename_and_move(
    transaction: WriteTransaction,
    targets: Sequence[Target],
    rules: WriteRules,
    places: ProviderPlaces,
) -> None:
    """Write names and parents of providers that were there."""
    different = [
        target
        for target in targets
        if target.is_renamed
        or target.uuid in places.wanted
        or (rules.rewrites_equal and target.entry.name is not None)
    ]
    for target in different:
        row = target.row
        name = target.entry.name
        if name is not None and name != row.name:
            target.changed.append("name")
            row.name = name
        if target.uuid in places.wanted:
            target.changed.append("parent_provider_uuid")
            row.parent_id = _id(places, places.wanted[target.uuid])
    for target in different:
        transaction.change(
            _UPDATE_NAME_AND_PARENT,
            provider_id=target.row.id,
            new_name=target.row.name,
            new_parent=target.row.parent_id,
            at=transaction.now,
        )
    transaction.touch_providers((target.row.id for target in different), Part.PROVIDER)


def _set_roots(
    transaction: WriteTransaction, targets: Sequence[Target], places: ProviderPlaces
) -> Collection[int]:
    """Write the roots of all that move along, and record their former trees; return their ids."""
    moved = {target.uuid for target in targets if target.uuid in places.wanted}
    along = places.hierarchy.moved_along(moved)
    tops = places.hierarchy.tops(along)
    uuids = {places.ids[uuid]: uuid for uuid in places.before}
    new_roots: defaultdict[int, set[int]] = defaultdict(set)
    trees: defaultdict[int, list[int]] = defaultdict(list)
    for uuid in along:
        # The update also locks the rows of providers that keep their root.
        new_roots[_root(places, tops[uuid])].add(places.ids[uuid])
        trees[places.roots[uuid]].append(places.ids[uuid])
    for root, ids in sorted(new_roots.items()):
        for chunk in chunks(sorted(ids)):
            set_root(transaction, chunk, root)
    for root, ids_of_tree in trees.items():
        transaction.touch_providers(sorted(ids_of_tree), Part.PROVIDER, tree=uuids.get(root))
    for target in targets:
        if target.uuid in along:
            target.row.root_id = _root(places, tops[target.uuid])
    return {places.ids[uuid] for uuid in along}
