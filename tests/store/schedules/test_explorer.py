# SPDX-License-Identifier: Apache-2.0
"""The explorer finds planted defects, and covers every write of the store."""

import ast
import importlib
from pathlib import Path

import pytest

import treeclaim
from tests.databases import EACH_SERVER
from tests.store.schedules.cases import Case
from tests.store.schedules.defects import DEFECTS, SET_GENERATION, world_of_counters
from tests.store.schedules.exploration import Exploration, describe
from tests.store.schedules.worlds import HOST, WORLDS, write
from treeclaim.model.changes import UsageChange
from treeclaim.store.takeover import data_migrations


def count_up_silently(transaction):
    """Change a provider without a row in the feed."""
    transaction.execute(SET_GENERATION, provider=HOST, new=77)


def report_impossible_claim(transaction):
    """Append the feed row of a claim that never happened, with an impossible generation."""
    transaction.touch_usage(1, UsageChange({99: 1}, steps=1, generation=77, modified_at=0.0))


ON_SERVERS = pytest.mark.parametrize("place", EACH_SERVER, indirect=True)
EVERYWHERE = pytest.mark.parametrize("place", ["sqlite", *EACH_SERVER], indirect=True)


@ON_SERVERS
def test_lost_update_is_found_and_replays(place):
    defect = DEFECTS[-1]
    case = Case(place.kind, defect.world, defect.scripts, preemptions=1)
    failure = next(Exploration(place, case).failures())
    assert failure.reasons == ("no serial order has this outcome",)
    replayed = Exploration(place, case).replay(failure.course.choices)
    assert describe(case, replayed) == describe(case, failure)


@EVERYWHERE
@pytest.mark.parametrize("operation", [count_up_silently, report_impossible_claim])
def test_wrong_feed_is_found(place, operation):
    world = world_of_counters(write(operation))
    case = Case(place.kind, world, ("count", "count"), preemptions=1)
    failure = next(Exploration(place, case).failures())
    assert "a reader of the feed differs from a full load" in failure.reasons


@pytest.mark.slow
def test_every_write_operation_is_explored():
    explored_functions = {
        operation.function
        for world in WORLDS.values()
        for script in world.scripts.values()
        for operation in script.operations
    }
    written_somewhere = set(data_migrations.MIGRATIONS) | set(functions_given_to_write())
    assert len(written_somewhere) > 20
    assert not {function.__qualname__ for function in written_somewhere - explored_functions}


def functions_given_to_write():
    """Yield the functions that the program passes to `Store.write` by name."""
    root = Path(treeclaim.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="write"),
                    args=[ast.Attribute(value=ast.Name(id=module), attr=name), *_],
                ):
                    parts = path.relative_to(root.parent).with_suffix("").parts
                    namespace = importlib.import_module(".".join(parts))
                    # Otherwise it is an operation of a table.
                    if hasattr(namespace, module):
                        yield getattr(getattr(namespace, module), name)
