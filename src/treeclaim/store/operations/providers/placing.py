# SPDX-License-Identifier: Apache-2.0
"""Creates, renames and moves the providers of a batch, judged by the final state."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from treeclaim.model.errors import InvalidParentError
from treeclaim.model.extension.batches.batch import Problem, Unnamed
from treeclaim.model.extension.batches.hierarchy import Hierarchy
from treeclaim.model.parts import Part
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.locks.provider_rows import lock_providers
from treeclaim.store.operations.providers.part_writer import Target
from treeclaim.store.operations.providers.providers import UPDATE_NAME_AND_PARENT, forget_former
from treeclaim.store.operations.providers.trees import lock_shapes, set_root
from treeclaim.store.schema.tables import resource_providers

_INSERT = sa.insert(resource_providers)
_OWN_ROOT = (
    sa.update(resource_providers)
    .where(
        resource_providers.c.uuid.in_(sa.bindparam("uuids", expanding=True)),
        resource_providers.c.root_provider_id.is_(None),
    )
    .values(root_provider_id=resource_providers.c.id)
)
_ROWS = sa.select(
    resource_providers.c.id,
    resource_providers.c.uuid,
    resource_providers.c.parent_provider_id,
    sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id).label("root"),
)
_WITHOUT_NAME = (
    sa.update(resource_providers)
    .where(resource_providers.c.id.in_(sa.bindparam("ids", expanding=True)))
    .values(name=None)
)


@dataclass(slots=True)
class _Places:
    """The present providers, and their places after the batch.

    Attributes:
        wanted: Parent by uuid, of those that get another one or are new.
        ids: Ids by uuid, of all that are known.
        roots: Ids of roots by uuid, as they are before.
        before: Parent by uuid, of all in the trees that are changed.
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


def place(
    transaction: WriteTransaction, targets: Sequence[Target], problems: list[Problem]
) -> None:
    """Create, rename and move providers, or note what is wrong about their parents.

    Nothing is written if there is any problem.

    Raises:
        RetryTransactionError: if a tree has changed before it was locked.
    """
    places = _Places(_wanted(transaction, targets))
    existing_uuids = _lock_trees(transaction, targets, places)
    _read_trees(transaction, targets, places)
    new = [target.uuid for target in targets if target.is_new]
    faults = places.hierarchy.faults(new, existing_uuids)
    problems += [
        Problem(target.index, InvalidParentError(faults[target.uuid]))
        for target in targets
        if target.uuid in faults
    ]
    if problems:
        return
    _release_names(transaction, targets)
    _create(transaction, {target.uuid: target for target in targets if target.is_new}, places)
    existing = [target for target in targets if not target.is_new]
    _rename_and_move(transaction, existing, places)
    _set_roots(transaction, existing, places)


def _wanted(transaction: ReadTransaction, targets: Sequence[Target]) -> dict[str, str | None]:
    """Return the parents of those that are new or get another one."""
    parent_by_uuid: dict[str, str | None] = {}
    named: list[tuple[Target, str | None]] = []
    for target in targets:
        parent = target.entry.parent
        if target.is_new:
            parent_by_uuid[target.uuid] = None if isinstance(parent, Unnamed) else parent
        elif not isinstance(parent, Unnamed):
            named.append((target, parent))
    ids = {target.row.parent_id for target, _ in named if target.row.parent_id is not None}
    uuids = {row.id: row.uuid for row in _rows(transaction, resource_providers.c.id, ids)}
    for target, parent in named:
        present = target.row.parent_id
        if parent != (None if present is None else uuids.get(present)):
            parent_by_uuid[target.uuid] = parent
    return parent_by_uuid


def _lock_trees(
    transaction: WriteTransaction, targets: Sequence[Target], places: _Places
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


def _read_trees(transaction: ReadTransaction, targets: Sequence[Target], places: _Places) -> None:
    """Read the trees that lose providers, and those that get existing ones."""
    roots = set()
    for target in targets:
        if not target.is_new and target.uuid in places.wanted:
            roots.add(target.row.root_id)
            parent = places.wanted[target.uuid]
            if parent in places.roots:
                roots.add(places.roots[parent])
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
    transaction: ReadTransaction, column: sa.ColumnElement[Any], values: Collection[Any]
) -> list[Any]:
    """Return the rows of providers with exactly some values of a column."""
    return [
        row
        for chunk in chunks(sorted(values))
        for row in transaction.rows(_ROWS.where(column.in_(chunk)))
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


def _create(transaction: WriteTransaction, new: Mapping[str, Target], places: _Places) -> None:
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
        transaction.execute_each(_INSERT, rows)
        transaction.execute(_OWN_ROOT, uuids=uuids)
        row_by_uuid = {row.uuid: row for row in lock_providers(transaction, uuids)}
        if len(row_by_uuid) != len(uuids):
            raise RetryTransactionError
        for uuid in uuids:
            new[uuid].provider = row_by_uuid[uuid]
            places.ids[uuid] = row_by_uuid[uuid].id
        ids = [row.id for row in row_by_uuid.values()]
        forget_former(transaction, ids)
        transaction.touch_providers(ids)


def _id(places: _Places, uuid: str | None) -> int | None:
    return None if uuid is None else places.ids[uuid]


def _root(places: _Places, top: str) -> int:
    """Return the id of the root, of the highest known provider."""
    is_changed = top in places.before or top in places.wanted
    return places.ids[top] if is_changed else places.roots[top]


def _rename_and_move(
    transaction: WriteTransaction, targets: Sequence[Target], places: _Places
) -> None:
    """Write names and parents of providers that were there."""
    different = [target for target in targets if target.is_renamed or target.uuid in places.wanted]
    for target in different:
        row = target.row
        if target.is_renamed:
            target.changed.append("name")
            row.name = target.entry.name or row.name
        if target.uuid in places.wanted:
            target.changed.append("parent_provider_uuid")
            row.parent_id = _id(places, places.wanted[target.uuid])
    transaction.execute_each(
        UPDATE_NAME_AND_PARENT,
        (
            {
                "provider_id": target.row.id,
                "new_name": target.row.name,
                "new_parent": target.row.parent_id,
                "at": transaction.now,
            }
            for target in different
        ),
    )
    transaction.touch_providers((target.row.id for target in different), Part.PROVIDER)


def _set_roots(transaction: WriteTransaction, targets: Sequence[Target], places: _Places) -> None:
    """Write the roots of all that move along, and tell the feed from which tree they come."""
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
            set_root(transaction, set(chunk), root)
    for root, ids_of_tree in trees.items():
        transaction.touch_providers(sorted(ids_of_tree), Part.PROVIDER, tree=uuids.get(root))
    for target in targets:
        if target.uuid in along:
            target.row.root_id = _root(places, tops[target.uuid])
