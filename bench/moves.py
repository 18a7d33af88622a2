# SPDX-License-Identifier: Apache-2.0
"""How long plans of moves take in a cloud of 1,000 hosts, and how good they are.

`python -m bench.moves [--worlds N]`. The planner is asked as the service asks it, in this process.
"""

import argparse
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import counted_now
from treeclaim.forest.placing.independent import query_of
from treeclaim.forest.placing.scratch import Allocation, Scratch
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.movers import MoveSituation
from treeclaim.forest.planning.moves.planner import make_plan
from treeclaim.forest.table.columns import Integers
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, Cursor
from treeclaim.model.extension.moves import Empty, Fit, Keep, Moves
from treeclaim.model.inventory import Inventory
from treeclaim.model.provider import InventoryRecord, ProviderRecord
from treeclaim.model.request import CandidateRequest, RequestGroup

HOSTS = 1_000
VCPU, MEMORY = 64, 256
FLAVORS = ((1, 2), (2, 4), (2, 8), (4, 8), (4, 16), (8, 32), (8, 64), (16, 64))
WEIGHTS = (20, 20, 20, 15, 10, 8, 4, 3)
LARGE = (48, 192)
Mix = tuple[tuple[CandidateRequest, int], ...]
_CLASSES = ("VCPU", "MEMORY_MB")
_GIB = 1_024


@dataclass(frozen=True)
class Cloud:
    """A cloud with everybody in it."""

    forest: Forest
    consumers: Sequence[PlannedConsumer]


def request_of(vcpu: int, memory: int) -> CandidateRequest:
    """Return a request for a flavor; memory in GiB."""
    return CandidateRequest((RequestGroup("", {"VCPU": vcpu, "MEMORY_MB": memory * _GIB}),))


def uuid_of(number: int) -> str:
    """Return a uuid."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def cloud(seed: int, *, filled: float = 1.0, gone: float = 0.0) -> Cloud:
    """Make a cloud.

    Args:
        seed: Of chance.
        filled: How much of it is used at least, until which consumers come.
        gone: How many of these have left again.
    """
    chance = random.Random(seed)
    used = [[0, 0] for _ in range(HOSTS)]
    held: list[tuple[int, int]] = []
    misses = 0
    while misses < 200 and sum(one[0] for one in used) < filled * HOSTS * VCPU:
        (flavor,) = chance.choices(range(len(FLAVORS)), WEIGHTS)
        vcpu, memory = FLAVORS[flavor]
        for host in chance.sample(range(HOSTS), 20):
            if used[host][0] + vcpu <= VCPU and used[host][1] + memory <= MEMORY:
                used[host][0] += vcpu
                used[host][1] += memory
                held.append((host, flavor))
                misses = 0
                break
        else:
            misses += 1
    chance.shuffle(held)
    del held[: int(len(held) * gone)]
    return _made(held)


def _made(held: Sequence[tuple[int, int]]) -> Cloud:
    used = [[0, 0] for _ in range(HOSTS)]
    for host, flavor in held:
        used[host][0] += FLAVORS[flavor][0]
        used[host][1] += FLAVORS[flavor][1] * _GIB
    records = [
        ProviderRecord(
            id=host + 1,
            uuid=uuid_of(host),
            name=f"cmp-{host}",
            generation=0,
            parent_id=None,
            root_id=host + 1,
            modified_at=0.0,
            inventories=(
                InventoryRecord(0, Inventory(VCPU), used[host][0], 0.0),
                InventoryRecord(1, Inventory(MEMORY * _GIB), used[host][1], 0.0),
            ),
            links={"traits": (), "aggregates": ()},
        )
        for host in range(HOSTS)
    ]
    forest = Forest()
    classes = [CatalogueEntry(number, name, 0.0) for number, name in enumerate(_CLASSES)]
    forest.apply(
        Changes(
            Cursor({}, None, frozenset()),
            complete=True,
            records=records,
            removed=[],
            catalogue=Catalogue.of([], classes),
        )
    )
    consumers = []
    for number, (host, flavor) in enumerate(held):
        vcpu, memory = FLAVORS[flavor]
        allocations = {uuid_of(host): {"VCPU": vcpu, "MEMORY_MB": memory * _GIB}}
        asked = (request_of(vcpu, memory),)
        consumers.append(
            PlannedConsumer(uuid_of(1_000_000 + number), "p", None, 1, allocations, asked, (0,))
        )
    return Cloud(forest, consumers)


def drain(worlds: int) -> Iterator[str]:
    """Empty one host in a cloud that is four fifths full."""
    for seed in range(worlds):
        made = cloud(seed, filled=0.8)
        call = Moves(Empty((uuid_of(seed),)))
        begin = time.process_time()
        plan = make_plan(made.forest, made.consumers, call, Budget())
        seconds = time.process_time() - begin
        yield (
            f"drain, {len(made.consumers)} consumers, {plan['before']['left']} to go: "
            f"{1000 * seconds:.0f} ms, {len(plan['moves'])} moves, reached {plan['reached']}"
        )


def room(worlds: int, filled: float) -> Iterator[str]:
    """Make room for one large consumer in a cloud in which it fits nowhere."""
    good = 0
    for seed in range(worlds):
        made = cloud(seed, filled=filled)
        call = Moves(Fit(request_of(*LARGE), 1), max_moves=100)
        begin = time.process_time()
        end = time.monotonic() + 30
        plan = make_plan(made.forest, made.consumers, call, Budget(), end)
        seconds = time.process_time() - begin
        moves = len(plan["moves"])
        good += plan["reached"] and moves <= 1.3 * plan["at_least"] and seconds < 5
        yield (
            f"room, {filled:.1%} used, {len(made.consumers)} consumers: {seconds:.2f} s, {moves} moves, "
            f"at least {plan['at_least']}, reached {plan['reached']}"
        )
    yield f"room, {filled:.1%} used: {good} of {worlds} in less than 5 s and at most 1.3 times the bound"


def defragment(worlds: int, moves: int = 50) -> Iterator[str]:
    """Make so many moves for a mix, beside random ones, and ones by the greatest gain of one."""
    mix = ((request_of(16, 64), 4), (request_of(32, 128), 8))
    for seed in range(worlds):
        made = cloud(seed, gone=0.15)
        begin = time.process_time()
        end = time.monotonic() + 30
        plan = make_plan(
            made.forest, made.consumers, Moves(Keep(mix), max_moves=moves), Budget(), end
        )
        seconds = time.process_time() - begin
        before, after = plan["before"]["fits"], plan["after"]["fits"]
        yield (
            f"defragment, {moves} moves: {seconds:.1f} s, {before} to {after} "
            f"(+{after - before}); at random {_random(made, mix, moves, seed):+d}; "
            f"greedy {_greedy(made, mix, moves):+d}; complete {plan['complete']}"
        )
        begin = time.process_time()
        call = Moves(Keep(mix, empty_trees=True), max_moves=moves)
        plan = make_plan(made.forest, made.consumers, call, Budget(), time.monotonic() + 30)
        yield (
            f"empty trees, {moves} moves: {time.process_time() - begin:.1f} s, "
            f"{plan['before']} to {plan['after']}"
        )


def _worth(forest: Forest, mix: Mix) -> int:
    return sum(weight * counted_now(forest, one, Budget()).fits for one, weight in mix)


def _random(made: Cloud, mix: Mix, moves: int, seed: int) -> int:
    """Return what random moves gain."""
    chance = random.Random(seed)
    board = Board(MoveSituation(made.forest, made.consumers, Moves(Keep(mix)), Budget()))
    before = _worth(board.forest, mix)
    movers = list(board.situation.movable)
    chance.shuffle(movers)
    for mover in movers:
        allowed = board.open_trees.copy()
        allowed[:] = [chance.random() < 0.1 for _ in allowed]
        found = board.find(mover, allowed)
        if found is not None:
            board.move(mover, *found)
        if len(board.moves) == moves:
            break
    return _worth(board.forest, mix) - before


def _greedy(made: Cloud, mix: Mix, moves: int) -> int:
    """Return what is gained by always making the single move that gains most.

    Consumers of a host and flavor are alike; each goes where it costs nothing, if there is such a
    host: so the best single move is the best release.
    """
    scratch = Scratch(made.forest)
    before = now = _worth(scratch.forest, mix)
    held: dict[str, list[Allocation]] = {}
    people = {one.uuid: one for one in made.consumers}
    for one in made.consumers:
        ((uuid, amounts),) = one.allocations.items()
        row = made.forest.row_of(uuid)
        position = int(made.forest.order.position[row if row is not None else 0])
        held[one.uuid] = [(position, name, n) for name, n in amounts.items()]
    for _ in range(moves):
        kind = _best_release(scratch, held, people, mix)
        if kind is None:
            break
        scratch.give_back(held[kind.uuid])
        after = _placed_without_loss(scratch, kind, mix, held[kind.uuid][0][0])
        if after <= now:
            break
        now = after
        del held[kind.uuid]
    return now - before


def _best_release(
    scratch: Scratch,
    held: Mapping[str, list[Allocation]],
    people: Mapping[str, PlannedConsumer],
    mix: Mix,
) -> PlannedConsumer | None:
    """Return whose release gains most; None if nobody's gains anything."""
    best, kind = 0, None
    base = _by_tree(scratch.forest, mix)
    alike = {
        (allocations[0][0], people[uuid].requests[0]): people[uuid]
        for uuid, allocations in held.items()
    }
    rounds: dict[CandidateRequest, list[PlannedConsumer]] = {}
    for (_, request), one in alike.items():
        rounds.setdefault(request, []).append(one)
    for some in rounds.values():
        for one in some:
            scratch.give_back(held[one.uuid])
        gains = _by_tree(scratch.forest, mix) - base
        for one in some:
            scratch.take(held[one.uuid])
            gain = int(gains[scratch.forest.order.tree[held[one.uuid][0][0]]])
            if gain > best:
                best, kind = gain, one
    return kind


def _by_tree(forest: Forest, mix: Mix) -> Integers:
    counted = [(counted_now(forest, one, Budget()).by_tree, weight) for one, weight in mix]
    found: Integers = np.zeros(HOSTS, dtype=np.int64)
    for fits, weight in counted:
        if fits is not None:
            found += weight * fits[0]
    return found


def _placed_without_loss(
    scratch: Scratch,
    one: PlannedConsumer,
    mix: Mix,
    source: int,
) -> int:
    """Place somebody where the mix loses least of some hosts; return what it is worth then."""
    query = query_of(scratch, one.requests[0], Budget())
    best, allocations = -1, None
    for number, candidate in enumerate(query.each()):
        if candidate.allocations[0][0] != source:
            scratch.take(candidate.allocations)
            worth = _worth(scratch.forest, mix)
            scratch.give_back(candidate.allocations)
            if worth > best:
                best, allocations = worth, candidate.allocations
        if number > 60:
            break
    if allocations is not None:
        scratch.take(allocations)
    return best


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=10)
    worlds = parser.parse_args().worlds
    for lines in (
        drain(worlds),
        room(worlds, 0.95),
        room(worlds, 0.98),
        defragment(max(1, worlds // 5)),
    ):
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
