# SPDX-License-Identifier: Apache-2.0
"""A worker's copy of the database, from which it answers questions (decision 0013).

`following` keeps the Forest equal to the store. `replica` answers short questions within a `turn`, and long ones in
forked children of a `child_pool`. `answer_cache` keeps answers until the Forest changes.
"""

# numpy.unique imports it at its first call; the 40 ms must not extend the turn of the first change.
import numpy.ma  # noqa: F401

from treeclaim.replica.answer_cache import WholeAnswer
from treeclaim.replica.batches import Batches
from treeclaim.replica.following import SharedForest
from treeclaim.replica.question import Arrival, Question
from treeclaim.replica.replica import Replica

__all__ = [
    "Arrival",
    "Batches",
    "Question",
    "Replica",
    "SharedForest",
    "WholeAnswer",
]
