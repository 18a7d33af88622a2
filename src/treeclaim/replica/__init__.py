# SPDX-License-Identifier: Apache-2.0
"""One worker's copy of the database, and the lanes that answer questions from it.

`following` keeps the Forest equal to the store, `kept` the answers that still hold, `fast` is the
lane for what is short, `slow` with `child`, `parent` and `wire` the one for what is long, and
`replica` puts them together (decision 0013).
"""

# numpy.unique loads it at its first call, which takes 40 ms, and would in the turn of a first change.
import numpy.ma  # noqa: F401

from treeclaim.replica.asking import Asked
from treeclaim.replica.batches import Batches
from treeclaim.replica.following import FollowedForest
from treeclaim.replica.kept import KeptAnswer
from treeclaim.replica.questions import CandidateQuestion, ExplainQuestion
from treeclaim.replica.replica import Replica

__all__ = [
    "Asked",
    "Batches",
    "CandidateQuestion",
    "ExplainQuestion",
    "FollowedForest",
    "KeptAnswer",
    "Replica",
]
