# SPDX-License-Identifier: Apache-2.0
"""All operations under /treeclaim of contract page 99."""

from treeclaim.api.resources.extension import batches, listing
from treeclaim.api.resources.extension.audit import operations as audit
from treeclaim.api.resources.extension.changes import operations as changes
from treeclaim.api.resources.extension.holders import operations as holders
from treeclaim.api.resources.extension.totals import operations as totals

OPERATIONS = (
    *listing.OPERATIONS,
    *batches.OPERATIONS,
    *holders.OPERATIONS,
    *totals.OPERATIONS,
    *changes.OPERATIONS,
    *audit.OPERATIONS,
)
