# SPDX-License-Identifier: Apache-2.0
"""Creates, changes and deletes one provider (contract page 20)."""

from treeclaim.model.claim import Omission
from treeclaim.model.errors import (
    DuplicateProviderError,
    ProviderHasChildrenError,
    ProviderInUseError,
)
from treeclaim.model.extension.batch import BatchEntry
from treeclaim.model.provider import Provider
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, to_timestamp
from treeclaim.store.operations.locks.provider_rows import lock_provider
from treeclaim.store.operations.providers.consumption import require_unconsumed
from treeclaim.store.operations.providers.entries import write_targets
from treeclaim.store.operations.providers.part_writer import Target, WriteRules
from treeclaim.store.operations.providers.tree_writer import find_uuids
from treeclaim.store.schema.tables import ROWS_OF_PROVIDERS, allocations

_SELECT_NAMED = "SELECT id, name FROM resource_providers WHERE name = :name"
# One query: a second query could see a provider that the first one did not see.
_SELECT_TAKEN_NAMES = """
SELECT uuid = :uuid AS uuid_taken, COALESCE(name = :name, false) AS name_taken
FROM resource_providers WHERE uuid = :uuid OR name = :name
"""
_CHILD_AND_ROOT = """
SELECT EXISTS (
    SELECT 1 FROM resource_providers WHERE parent_provider_id = :provider_id
) AS has_child, (SELECT uuid FROM resource_providers WHERE id = :root_id) AS root
"""
_ALLOCATION = "SELECT id FROM allocations WHERE resource_provider_id = :provider_id LIMIT 1"
_DELETE_PARTS = [
    f"DELETE FROM {table.name} WHERE resource_provider_id = :provider_id"
    for table in ROWS_OF_PROVIDERS
    if table is not allocations
]
# A root refers to itself. Some databases delete such a row only without the reference.
_DETACH = "UPDATE resource_providers SET root_provider_id = NULL WHERE id = :provider_id"
_DELETE = "DELETE FROM resource_providers WHERE id = :provider_id"


def create(
    transaction: WriteTransaction, *, uuid: str, name: str, parent_uuid: str | None
) -> Provider:
    """Create a provider (section 3).

    Raises:
        InvalidParentError: if the parent is the provider itself or does not exist.
        DuplicateProviderError: if a provider has the UUID or the name.
    """
    target = Target(0, BatchEntry(uuid, name, parent_uuid), uuid, None, is_new=True)
    write_targets(
        transaction,
        [target],
        WriteRules(),
        [],
        check_names=lambda: _require_unused(transaction, uuid, name),
    )
    return _make_provider(transaction, target)


def update(
    transaction: WriteTransaction,
    uuid: str,
    *,
    name: str,
    parent: str | Omission | None = Omission.OMITTED,
    may_reparent: bool = True,
) -> Provider:
    """Rename a provider, or move it with its subtree (section 5).

    Raises:
        ProviderNotFoundError: if the provider does not exist.
        DuplicateProviderError: if another provider has the name.
        InvalidParentError: in the cases of section 5.1, and unless `may_reparent` for any other parent.
    """
    rules = WriteRules(rewrites_equal=True, may_reparent=may_reparent)
    provider = lock_provider(transaction, uuid)

    def check_name() -> None:
        namesake = transaction.row(_SELECT_NAMED, name=name)
        if namesake is not None and namesake.id != provider.id:
            raise DuplicateProviderError(name=name)

    target = Target(0, BatchEntry(uuid, name, parent), uuid, provider, is_new=False)
    write_targets(transaction, [target], rules, [], check_names=check_name)
    return _make_provider(transaction, target)


def _make_provider(transaction: ReadTransaction, target: Target) -> Provider:
    row = target.row
    ids = {row.root_id} if row.parent_id is None else {row.root_id, row.parent_id}
    uuids = {row.id: row.uuid} if ids == {row.id} else find_uuids(transaction, ids)
    return Provider(
        uuid=row.uuid,
        name=row.name,
        generation=row.generation,
        parent_uuid=None if row.parent_id is None else uuids[row.parent_id],
        root_uuid=uuids[row.root_id],
        modified_at=to_timestamp(transaction.now),
    )


def delete(transaction: WriteTransaction, uuid: str) -> None:
    """Delete a provider with its inventories and associations (section 6).

    Raises:
        ProviderNotFoundError, ProviderHasChildrenError, ProviderInUseError.
    """
    provider = lock_provider(transaction, uuid)
    child_and_root = transaction.row(
        _CHILD_AND_ROOT, provider_id=provider.id, root_id=provider.root_id
    )
    if child_and_root.has_child:
        raise ProviderHasChildrenError(uuid)
    if transaction.row(_ALLOCATION, provider_id=provider.id) is not None:
        raise ProviderInUseError(uuid)
    require_unconsumed(transaction, provider)
    for statement in (*_DELETE_PARTS, _DETACH, _DELETE):
        transaction.execute(statement, provider_id=provider.id)
    transaction.touch_deleted(provider.id, provider.uuid, child_and_root.root or provider.uuid)


def _require_unused(transaction: ReadTransaction, uuid: str, name: str) -> None:
    rows = transaction.rows(_SELECT_TAKEN_NAMES, uuid=uuid, name=name)
    if rows:
        raise DuplicateProviderError(
            uuid=uuid if any(row.uuid_taken for row in rows) else None,
            name=name if any(row.name_taken for row in rows) else None,
        )
