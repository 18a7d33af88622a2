# SPDX-License-Identifier: Apache-2.0
"""What the store tells a Forest: the whole inventory, or what changed since a cursor."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from treeclaim.model.catalogue import Catalogue
from treeclaim.model.provider import ProviderRecord

Positions = Mapping[int, int]
"""How far each stream of the change feed has come, by identity of the stream."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a reader has come in the change feed (decision 0011).

    Attributes:
        positions: Of all streams, as the reader found them.
        epoch: The newest epoch that it found; None if there was none.
        finished: Streams that may be gone the next time without a loss: those that were closed,
            and epochs.
    """

    positions: Positions
    epoch: int | None
    finished: AbstractSet[int]


@dataclass(frozen=True, slots=True)
class Changes:
    """One consistent picture of everything committed after a cursor.

    Attributes:
        cursor: Pass this the next time.
        complete: True where `records` holds the whole inventory and replaces what was known.
        records: Providers as they are now, each as a whole.
        removed: Ids of providers that are gone (or never came to be).
        catalogue: All traits and resource classes if any of them changed, else None.
    """

    cursor: Cursor
    complete: bool
    records: Sequence[ProviderRecord]
    removed: Sequence[int]
    catalogue: Catalogue | None
