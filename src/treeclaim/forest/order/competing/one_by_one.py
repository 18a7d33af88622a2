# SPDX-License-Identifier: Apache-2.0
"""The most that slots can get of providers together, where many want the same and few are alike.

As in `filling`, one provider after the other is added. But it serves one slot after the other, and not
each state at once: what it is worth depends only on how many it serves that want the same.
"""

from collections.abc import Callable, Sequence

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.order.competing.filling import NEVER, Filling, Matrix
from treeclaim.forest.table.columns import Integers

_BARRED = NEVER + 2**60
"""What a state is less worth that cannot be reached; added to `NEVER` and any worth, it is in int64."""


def ones_of(numbers: Sequence[int], wants: Sequence[int], worth: Matrix) -> float:
    """Return as how many pairs it counts to serve slots one by one.

    Args:
        numbers: How many there are of each kind.
        wants: The number of what each kind wants.
        worth: What providers are worth in each way; see `FillingOneByOne`.
    """
    each = _size(numbers) / thresholds.STATES_A_PAIR + thresholds.PAIRS_A_CALL
    alike = 1 + len(numbers) / (max(wants) + 1)
    return float(np.count_nonzero(worth > NEVER) * alike * each)


class FillingOneByOne(Filling):
    """The same where kinds differ little: several want the same, and are only worth something else.

    A provider is worth what it is by how many it serves that want the same, its way, and by what each
    kind gains there. So its slots are served one by one; few ways are tried, where it has little room.
    """

    def __init__(
        self,
        numbers: Sequence[int],
        wants: Sequence[int],
        worth: Matrix,
        gains: Matrix,
        check: Callable[[], None],
    ) -> None:
        """Take what is added up.

        Args:
            numbers: How many slots of each kind there are.
            wants: The number of what each kind wants, from 0 on.
            worth: What each provider is worth in each way, shape (providers, ways): ways are states, as
                of `States`, of which kinds are what is wanted. `NEVER` for one goes for all with more.
            gains: The gains of each kind, shape (kinds, providers); `NEVER` for one a provider cannot serve.
            check: Called for each provider; may raise to give up.
        """
        super().__init__(_size(numbers), worth, check)
        self._gains = gains
        self._spare = np.empty(self._size, dtype=np.int64)
        self._kinds = [
            [kind for kind, wanted in enumerate(wants) if wanted == want and numbers[kind]]
            for want in range(max(wants) + 1)
        ]
        self._most = [sum(numbers[kind] for kind in kinds) for kinds in self._kinds]
        self._steps = _steps(self._most)
        self._moves = [
            (step, np.where(np.arange(step, self._size) // step % (count + 1) > 0, 0, _BARRED))
            for step, count in zip(_steps(numbers), numbers, strict=True)
        ]

    def _with(self, best: Integers, at: int, worth: Matrix) -> Integers:
        moves = [self._moves_of(kinds, at) for kinds in self._kinds]
        offered = worth[at]
        most = best + offered[0]
        # What the provider serves so far, which way that is, and what it may serve next.
        waiting = [(best, 0, 0)]
        while waiting:
            serving, way, want = waiting.pop()
            if want == len(moves):
                continue
            waiting.append((serving, way, want + 1))
            limit, more = self._most[want], way + self._steps[want]
            if way // self._steps[want] % (limit + 1) < limit and offered[more] > NEVER:
                self._check()
                served = self._one_more(serving, moves[want])
                np.maximum(most, np.add(served, offered[more], out=self._spare), out=most)
                waiting.append((served, more, want))
        # What cannot be does not become less and less.
        joined: Integers = np.maximum(most, NEVER)
        return joined

    def _moves_of(self, kinds: Sequence[int], at: int) -> list[tuple[int, Integers]]:
        """Return from how far before each state is reached by one more slot, and what is gained."""
        gains = self._gains[:, at]
        able = [kind for kind in kinds if gains[kind] > NEVER]
        return [(self._moves[kind][0], self._moves[kind][1] + gains[kind]) for kind in able]

    def _one_more(self, serving: Integers, moves: Sequence[tuple[int, Integers]]) -> Integers:
        """Return the most for each state when a provider serves one more slot."""
        most = self._nobody.copy()
        for step, gained in moves:
            moved = np.add(serving[:-step], gained, out=self._spare[step:])
            np.maximum(most[step:], moved, out=most[step:])
        return most


def _size(numbers: Sequence[int]) -> int:
    """Return how many states there are of so many slots of each kind."""
    return int(np.prod([count + 1 for count in numbers]))


def _steps(numbers: Sequence[int]) -> list[int]:
    """Return how far apart the states are that differ by one slot of each kind."""
    return [_size(numbers[kind + 1 :]) for kind in range(len(numbers))]
