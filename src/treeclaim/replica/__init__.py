# SPDX-License-Identifier: Apache-2.0
"""A worker's copy of the database, and the lanes that answer questions from it.

`following` keeps the Forest equal to the store, and `kept` keeps the answers that still hold. `replica` answers short
questions within a `turn`. Long ones are answered by children: see `child_pool` (decision 0013).
"""

# numpy.unique loads it at its first call, which takes 40 ms, and would in the turn of a first change.
import numpy.ma  # noqa: F401

from treeclaim.replica.batches import Batches
from treeclaim.replica.following import FollowedForest
from treeclaim.replica.kept import KeptAnswer
from treeclaim.replica.question import Arrival, Question
from treeclaim.replica.replica import Replica

__all__ = [
    "Arrival",
    "Batches",
    "FollowedForest",
    "KeptAnswer",
    "Question",
    "Replica",
]
