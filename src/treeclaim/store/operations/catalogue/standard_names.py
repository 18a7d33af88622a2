# SPDX-License-Identifier: Apache-2.0
"""Inserts standard traits and resource classes (contract pages 05, section 3.1, and 85, notes)."""

import os_resource_classes
import os_traits

from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.schema.tables import resource_classes, traits


def sync_standard_names(transaction: WriteTransaction) -> int:
    """Insert the missing standard names of the libraries, and return their number; existing names keep their ids."""
    known_traits = {row[0] for row in transaction.rows("SELECT name FROM traits")}
    new_traits = sorted(set(os_traits.get_traits()) - known_traits)
    transaction.change_each(
        compile_insert(traits),
        ({"name": name, "created_at": transaction.now} for name in new_traits),
    )
    known_classes = {row[0] for row in transaction.rows("SELECT name FROM resource_classes")}
    new_classes = [
        {"id": position, "name": name, "created_at": transaction.now}
        for position, name in enumerate(os_resource_classes.STANDARDS)
        if name not in known_classes
    ]
    transaction.change_each(compile_insert(resource_classes), new_classes)
    if new_traits or new_classes:
        transaction.touch_catalogue()
    return len(new_traits) + len(new_classes)
