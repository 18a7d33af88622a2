# SPDX-License-Identifier: Apache-2.0
"""Inserts the standard traits and resource classes of the libraries.

Contract pages 05 (section 3.1) and 85 (notes). Existing names and ids stay.
"""

import os_resource_classes
import os_traits

from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.schema.tables import resource_classes, traits


def _standard_traits() -> set[str]:
    return set(os_traits.get_traits())


def sync_standard_names(transaction: WriteTransaction) -> int:
    """Insert the missing standard names; return how many.

    Of two concurrent processes, the second one runs again and finds the names.
    """
    known_traits = {row[0] for row in transaction.rows("SELECT name FROM traits")}
    new_traits = [name for name in sorted(_standard_traits()) if name not in known_traits]
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
