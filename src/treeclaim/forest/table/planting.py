# SPDX-License-Identifier: Apache-2.0
"""Puts the providers of whole trees into rows: trees by root id, each in pre-order."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from treeclaim.model.provider import ProviderRecord

_NO_ROW = -1


@dataclass(slots=True)
class PlannedRow:
    """A provider with its new row.

    Attributes:
        record: The provider.
        parent: Row of its parent, -1 for a root.
        root: Row of its root.
        end: First row behind its subtree.
    """

    record: ProviderRecord
    parent: int
    root: int
    end: int


def plan_rows(records: Iterable[ProviderRecord], first: int) -> list[PlannedRow]:
    """Lay out whole trees from row `first` on; the list's order is the order of rows.

    Children come in order of their ids. A provider whose parent or root is not among the records
    (a database may be older than the rules) is taken as the root of its own tree.
    """
    by_id = {record.id: record for record in records}
    children: dict[int, list[ProviderRecord]] = defaultdict(list)
    roots = []
    for record in sorted(by_id.values(), key=lambda record: record.id):
        if record.parent_id in by_id:
            children[record.parent_id].append(record)
        else:
            roots.append(record)
    planned: list[PlannedRow] = []
    for root in roots:
        _plan_tree(root, children, planned, first)
    return planned


def _plan_tree(
    root: ProviderRecord,
    children: dict[int, list[ProviderRecord]],
    planned: list[PlannedRow],
    first: int,
) -> None:
    top = len(planned)
    pending = [(root, _NO_ROW)]
    while pending:
        record, parent = pending.pop()
        row = first + len(planned)
        planned.append(PlannedRow(_within(record, root), parent, first + top, row + 1))
        pending.extend((child, row) for child in reversed(children.get(record.id, ())))
    for planned_row in reversed(planned[top:]):
        if planned_row.parent != _NO_ROW:
            above = planned[planned_row.parent - first]
            above.end = max(above.end, planned_row.end)


def _within(record: ProviderRecord, root: ProviderRecord) -> ProviderRecord:
    return record if record.root_id == root.id else replace(record, root_id=root.id)
