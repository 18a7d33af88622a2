# SPDX-License-Identifier: Apache-2.0
"""All operations under /treeclaim of contract pages 99 to 102."""

from treeclaim.api.resources.extension import (
    aggregate_names,
    attributes,
    audit,
    batches,
    changes,
    holders,
    listing,
    mixes,
)
from treeclaim.api.resources.extension.holds import operations as holds
from treeclaim.api.resources.extension.totals import operations as totals

OPERATIONS = (
    *listing.OPERATIONS,
    *batches.OPERATIONS,
    *holders.OPERATIONS,
    *holds.OPERATIONS,
    *totals.OPERATIONS,
    *changes.OPERATIONS,
    *audit.OPERATIONS,
    *mixes.OPERATIONS,
    *aggregate_names.OPERATIONS,
    *attributes.OPERATIONS,
)
