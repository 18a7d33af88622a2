# SPDX-License-Identifier: Apache-2.0
"""Creates, renames and moves providers (contract page 20, sections 3 and 5)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from treeclaim.model.claim import Omission
from treeclaim.model.errors import InvalidParentError, ProviderNotFoundError
from treeclaim.model.extension.batch import EntryFault
from treeclaim.model.extension.hierarchy import Hierarchy
from treeclaim.model.parts import Part
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.systems import get_system
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.locks.provider_rows import lock_providers, lock_shapes
from treeclaim.store.operations.providers.part_writer import Target, WriteRules
from treeclaim.store.schema.tables import resource_providers

_INSERT = compile_insert(resource_providers)
_SET_OWN_ROOT = """
UPDATE resource_providers SET root_provider_id = id
WHERE uuid IN :uuids AND root_provider_id IS NULL
"""
_SELECT = """
SELECT id, uuid, parent_provider_id, COALESCE(root_provider_id, id) AS root FROM resource_providers
"""
_CLEAR_NAME = "UPDATE resource_providers SET name = NULL WHERE id IN :ids"
_SET_ROOT = "UPDATE resource_providers SET root_provider_id = :new_root WHERE id IN :ids"
_UPDATE_NAME_AND_PARENT = """
UPDATE resource_providers SET name = :new_name, parent_provider_id = :new_parent, updated_at = :at
WHERE id = :provider_id
"""
_DELETE_LEFTOVERS = [
    f"DELETE FROM {table} WHERE {column} IN :ids"
    for table, column in (
        ("treeclaim_attributes", "resource_provider_id"),
        ("treeclaim_conditions", "resource_provider_id"),
        ("treeclaim_consumption", "resource_provider_id"),
        ("treeclaim_consumption", "consumed_provider_id"),
    )
]


class TreeWriter:
    """Creates, renames and moves the providers of a call. Call `judge`, then `write`."""

    def __init__(
        self, transaction: WriteTransaction, targets: Sequence[Target], rules: WriteRules
    ) -> None:
        self._transaction = transaction
        self._targets = targets
        self._existing_targets = [target for target in targets if not target.is_new]
        self._rules = rules
        self._ids: dict[str, int] = {}
        """Ids of providers by UUID."""
        self._roots: dict[str, int] = {}
        """Root ids before the write, by UUID."""
        self._parents_before: dict[str, str | None] = {}
        """Parents before the write, of all providers in the changed trees."""
        self._new_parents = self._find_new_parents()
        """Parents of new and moved providers."""
        self._hierarchy = Hierarchy(self._parents_before, self._new_parents)

    def judge(self, problems: list[EntryFault]) -> None:
        """Lock the trees that gain or lose providers; add a problem for each invalid parent."""
        if not self._new_parents:
            return
        existing_uuids = self._lock_trees()
        self._read_trees()
        new_uuids = [target.uuid for target in self._targets if target.is_new]
        faults = self._hierarchy.find_faults(
            new_uuids, existing_uuids, may_reparent=self._rules.may_reparent
        )
        problems += [
            EntryFault(target.index, InvalidParentError(faults[target.uuid]))
            for target in self._targets
            if target.uuid in faults
        ]

    def write(self) -> Collection[int]:
        """Create, rename and move providers; return the ids of all moved providers and their descendants."""
        self._release_names()
        if self._new_parents:
            self._create()
        self._rename_and_move()
        return self._set_roots() if self._new_parents else ()

    def _find_new_parents(self) -> dict[str, str | None]:
        parent_by_uuid: dict[str, str | None] = {}
        stated_parents: list[tuple[Target, str | None]] = []
        for target in self._targets:
            parent = target.entry.parent
            if target.is_new:
                parent_by_uuid[target.uuid] = None if isinstance(parent, Omission) else parent
            elif not isinstance(parent, Omission):
                stated_parents.append((target, parent))
        ids = {
            target.row.parent_id
            for target, _ in stated_parents
            if target.row.parent_id is not None
        }
        uuids = find_uuids(self._transaction, ids)
        for target, parent in stated_parents:
            current_id = target.row.parent_id
            if parent != (None if current_id is None else uuids.get(current_id)):
                parent_by_uuid[target.uuid] = parent
        return parent_by_uuid

    def _lock_trees(self) -> set[str]:
        """Lock the trees that gain or lose providers; return all targets and existing parents."""
        targets = {target.uuid for target in self._targets}
        parents = {parent for parent in self._new_parents.values() if parent is not None}
        for target in self._existing_targets:
            self._ids[target.uuid] = target.row.id
            self._roots[target.uuid] = target.row.root_id
        self._index_rows(find_providers(self._transaction, "uuid", parents - targets))
        root_of_parent = {uuid: self._roots[uuid] for uuid in parents if uuid in self._roots}
        moved_roots = {self._roots[uuid] for uuid in self._new_parents if uuid in self._roots}
        if roots := {*root_of_parent.values(), *moved_roots}:
            lock_shapes(self._transaction, roots)
        outside_uuids = root_of_parent.keys() - targets
        reread_providers = find_providers(self._transaction, "uuid", outside_uuids)
        if {row.uuid: row.root for row in reread_providers} != {
            uuid: root_of_parent[uuid] for uuid in outside_uuids
        }:
            # Another transaction has moved or deleted a parent before the lock.
            raise RetryTransactionError
        return targets | root_of_parent.keys()

    def _read_trees(self) -> None:
        """Read the trees that lose providers; in the tree of a new parent, no parent changes."""
        roots = {
            target.row.root_id
            for target in self._existing_targets
            if target.uuid in self._new_parents
        }
        rows = [
            *find_providers(self._transaction, "root_provider_id", roots),
            # The root of old rows may be null.
            *find_providers(self._transaction, "id", roots),
        ]
        self._index_rows(rows)
        uuids = {row.id: row.uuid for row in rows}
        for row in rows:
            self._parents_before[row.uuid] = uuids.get(row.parent_provider_id)

    def _index_rows(self, rows: Iterable[Any]) -> None:
        for row in rows:
            self._ids[row.uuid] = row.id
            self._roots[row.uuid] = row.root

    def _release_names(self) -> None:
        """Clear names that other providers of the call get, so that no name exists twice."""
        new_names = {
            target.entry.name for target in self._targets if target.entry.name is not None
        }
        releasing_ids = [
            target.row.id
            for target in self._existing_targets
            if target.is_renamed and target.row.name in new_names
        ]
        for ids in chunks(sorted(releasing_ids)):
            self._transaction.execute(_CLEAR_NAME, ids=ids)

    def _create(self) -> None:
        # Parents come before children.
        new_targets = {target.uuid: target for target in self._targets if target.is_new}
        tops = self._hierarchy.find_tops(new_targets.keys())
        for uuids in self._hierarchy.sort_into_waves(new_targets):
            rows = [
                {
                    "uuid": uuid,
                    "name": new_targets[uuid].entry.name,
                    "generation": 0,
                    "parent_provider_id": self._get_parent_id(uuid),
                    "root_provider_id": None
                    if tops[uuid] == uuid
                    else self._get_new_root(tops[uuid]),
                    "created_at": self._transaction.now,
                }
                for uuid in uuids
            ]
            self._transaction.change_each(_INSERT, rows)
            if roots := [uuid for uuid in uuids if tops[uuid] == uuid]:
                self._transaction.change(_SET_OWN_ROOT, uuids=roots)
            row_by_uuid = {row.uuid: row for row in lock_providers(self._transaction, uuids)}
            if len(row_by_uuid) != len(uuids):
                raise RetryTransactionError
            for uuid in uuids:
                new_targets[uuid].provider = row_by_uuid[uuid]
                self._ids[uuid] = row_by_uuid[uuid].id
            ids = [row.id for row in row_by_uuid.values()]
            _delete_leftovers(self._transaction, ids)
            self._transaction.touch_providers(ids)

    def _rename_and_move(self) -> None:
        different_targets = [
            target
            for target in self._existing_targets
            if target.is_renamed
            or target.uuid in self._new_parents
            or (self._rules.rewrites_equal and target.entry.name is not None)
        ]
        for target in different_targets:
            row, name = target.row, target.entry.name
            if name is not None and name != row.name:
                target.changed.append("name")
                row.name = name
            if target.uuid in self._new_parents:
                target.changed.append("parent_provider_uuid")
                row.parent_id = self._get_parent_id(target.uuid)
            self._transaction.change(
                _UPDATE_NAME_AND_PARENT,
                provider_id=row.id,
                new_name=row.name,
                new_parent=row.parent_id,
                at=self._transaction.now,
            )
        self._transaction.touch_providers(
            (target.row.id for target in different_targets), Part.PROVIDER
        )

    def _set_roots(self) -> Collection[int]:
        """Write the roots of moved providers and their descendants, and record their trees; return their ids."""
        moved_uuids = self._hierarchy.find_moved(
            {target.uuid for target in self._existing_targets if target.uuid in self._new_parents}
        )
        tops = self._hierarchy.find_tops(moved_uuids)
        uuids = {self._ids[uuid]: uuid for uuid in self._parents_before}
        new_roots: defaultdict[int, list[int]] = defaultdict(list)
        trees: defaultdict[int, list[int]] = defaultdict(list)
        for uuid in moved_uuids:
            # The UPDATE also locks the rows of providers with an unchanged root.
            new_roots[self._get_new_root(tops[uuid])].append(self._ids[uuid])
            trees[self._roots[uuid]].append(self._ids[uuid])
        for root, ids in sorted(new_roots.items()):
            for chunk in chunks(sorted(ids)):
                set_root(self._transaction, chunk, root)
        for root, ids in trees.items():
            self._transaction.touch_providers(sorted(ids), Part.PROVIDER, tree=uuids.get(root))
        for target in self._existing_targets:
            if target.uuid in moved_uuids:
                target.row.root_id = self._get_new_root(tops[target.uuid])
        return {self._ids[uuid] for uuid in moved_uuids}

    def _get_parent_id(self, uuid: str) -> int | None:
        parent = self._new_parents[uuid]
        return None if parent is None else self._ids[parent]

    def _get_new_root(self, top: str) -> int:
        """Return the id of the root of a tree, given its top in the hierarchy."""
        is_changed = top in self._parents_before or top in self._new_parents
        return self._ids[top] if is_changed else self._roots[top]


def find_uuids(transaction: ReadTransaction, ids: Collection[int]) -> dict[int, str]:
    """Return the UUIDs of the existing providers, by id."""
    return {row.id: row.uuid for row in find_providers(transaction, "id", ids)}


def set_root(transaction: WriteTransaction, ids: Collection[int], root_id: int) -> None:
    """Write the root of providers."""
    transaction.execute(_SET_ROOT, ids=sorted(ids), new_root=root_id)


def find_providers(
    transaction: ReadTransaction, column: str, values: Collection[Any]
) -> list[Any]:
    """Return the rows of providers with exactly these values of a column."""
    return [
        row
        for row in transaction.rows_in_chunks(
            f"{_SELECT} WHERE {column} IN :keys", keys=sorted(values)
        )
        # Some collations also match other spellings.
        if column != "uuid" or row.uuid in values
    ]


def find_provider(transaction: ReadTransaction, uuid: str) -> Any:
    """Return `id`, `uuid` and `root` of a provider; raise `ProviderNotFoundError` if it does not exist."""
    for row in find_providers(transaction, "uuid", {uuid}):
        return row
    raise ProviderNotFoundError(uuid)


def _delete_leftovers(transaction: WriteTransaction, ids: Collection[int]) -> None:
    """Delete attributes, conditions and consumption of deleted providers with the same ids.

    Programs without support for these parts leave them behind.
    """
    if get_system(transaction.connection).reuses_ids:
        for batch in chunks(sorted(ids)):
            for statement in _DELETE_LEFTOVERS:
                transaction.execute(statement, ids=batch)
