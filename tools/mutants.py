# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.mutants`: mutate the code and count the mutants that the tests kill.

cosmic-ray mutates a copy of the tree below build/, and runs the tests of the mutated room. A surviving mutant shows
a missing test or a change without effect. `--sample N` draws N mutants by a seed, so that a run takes minutes.
"""

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkItem, WorkResult

ROOT = Path(__file__).parents[1]
COPY = ROOT / "build" / "mutants"
COPIED = ("src", "tests", "bench", "tools", "docs", "examples", "pyproject.toml", "conftest.py")

SECONDS = 120
"""Timeout of the tests of a mutant, which then counts as killed: most such mutants loop for ever. The tests of a room
take half a minute on a quiet machine; `--seconds` sets a longer timeout for a busy one."""

ROOMS: Mapping[str, Sequence[str]] = {
    "admin": ("--tier=ci", "tests/admin"),
    "api": ("tests/api", "tests/conformance", "tests/wsgi_servers"),
    "api/protocol": ("tests/api/protocol", "tests/conformance/test_worked_examples.py"),
    "cli": ("tests/cli", "tests/openstack_plugin"),
    "client": ("tests/client", "tests/cli/cloud"),
    "config": ("tests/config", "tests/cli/service", "tests/admin"),
    "forest": ("tests/forest", "tests/properties", "tests/reference"),
    "model": ("tests/model", "tests/api/protocol", "tests/api/resources", "tests/conformance"),
    "replica": ("tests/replica", "tests/properties", "tests/api/resources/placing"),
    "server": ("tests/server", "tests/cli/test_serve.py", "tests/faults/test_attacks.py"),
    "comparison": ("--tier=ci", "tests/comparison"),
    "store": ("tests/store", "tests/api/resources", "tests/conformance"),
    "store/feed": ("tests/store/feed", "tests/watching"),
    "store/operations": (
        "tests/store/operations",
        "tests/store/writes",
        "tests/api/resources/extension/test_batches.py",
        "tests/conformance/test_gabbits.py",
        "tests/properties/test_claims_match_the_model.py",
        "tests/properties/test_the_store_matches_the_model.py",
    ),
    "ui": ("tests/ui",),
    "watching": ("tests/watching", "tests/api/resources/extension"),
    "__main__.py": ("tests/cli/test_commands.py",),
    "allocator.py": ("tests/server/test_shared_memory.py", "tests/cli/test_serve.py"),
    "gate.py": ("tests/test_gate.py", "tests/api/test_admission.py"),
    "helper_threads.py": ("tests/test_helper_threads.py",),
    "log_lines.py": ("tests/test_logs.py",),
    "log_queue.py": ("tests/test_logs.py", "tests/test_helper_threads.py"),
    "logs.py": (
        "--tier=ci",
        "tests/cli/service/test_configured.py",
        "tests/deploy/test_loggers.py",
    ),
    "metrics.py": ("tests/admin",),
    "metrics_folder.py": ("tests/test_metrics_folder.py",),
    "wsgi.py": ("tests/test_wsgi.py", "tests/wsgi_servers"),
}
"""Rooms (folders or modules of src/treeclaim) with the tests that must kill their mutants, quick tests first."""


def main() -> int:
    """Test mutants of the chosen rooms; print the survivors and the share of killed mutants."""
    options = _options()
    _copy()
    database = COPY / "session.sqlite"
    configuration = COPY / "cosmic-ray.toml"
    survivor_count, noticed_count = 0, 0
    for room in [options.room] if options.room else ROOMS:
        configuration.write_text(_configuration(room, options.seconds))
        database.unlink(missing_ok=True)
        _cosmic_ray("init", configuration, database)
        _draw(database, options.sample, random.Random(f"{options.seed} {room}"))
        _cosmic_ray("exec", configuration, database)
        with use_db(str(database)) as work:
            for item, result in _judged(work):
                if result.test_outcome == TestOutcome.SURVIVED:
                    survivor_count += 1
                    _show(item, result)
                else:
                    noticed_count += 1
    total = survivor_count + noticed_count
    print(
        f"{noticed_count} of {total} mutants were noticed ({100 * noticed_count / max(total, 1):.0f} %)"
    )
    return 0


def tests_of(room: str) -> Sequence[str]:
    """Return the tests of a room, or of the innermost room around it.

    Raises:
        KeyError: if no room has tests.
    """
    while room not in ROOMS:
        if "/" not in room:
            raise KeyError(room)
        room = room.rpartition("/")[0]
    return ROOMS[room]


def _copy() -> None:
    """Copy the files that the tests need, so that no mutant is written to the working tree."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, COPY / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, COPY / name)


def _configuration(room: str, seconds: int) -> str:
    command = (
        f"env PYTHONPATH={COPY / 'src'} TREECLAIM_PROPERTY_EXAMPLES=20 PYTHONDONTWRITEBYTECODE=1 "
        f"{sys.executable} -m pytest -q -x -p no:cacheprovider --hypothesis-seed=1 {' '.join(tests_of(room))}"
    )
    return (
        f'[cosmic-ray]\nmodule-path = "src/treeclaim/{room}"\ntimeout = {seconds}.0\n'
        f'excluded-modules = {_list_excluded(room)}\ntest-command = "{command}"\n'
        '[cosmic-ray.distributor]\nname = "local"\n'
    )


def _list_excluded(room: str) -> str:
    """Return the rooms within a room that have their own tests, as TOML."""
    inner_patterns = [
        f"src/treeclaim/{inner}/**/*.py" for inner in ROOMS if inner.startswith(f"{room}/")
    ]
    return json.dumps(inner_patterns)


def _cosmic_ray(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "cosmic_ray.cli", *map(str, arguments)]
    subprocess.run(command, cwd=COPY, check=True, stdout=subprocess.DEVNULL)


def _draw(database: Path, sample: int | None, dice: random.Random) -> None:
    """Delete all mutants from the database except a sample."""
    with use_db(str(database)) as work:
        items = sorted(
            filter(_changes_a_value, work.work_items), key=lambda item: str(item.mutations)
        )
        drawn_items = items if sample is None else dice.sample(items, min(sample, len(items)))
        work.clear()
        for item in drawn_items:
            work.add_work_item(item)


def _changes_a_value(item: WorkItem) -> bool:
    """Return whether a mutant can change a value; cosmic-ray also mutates annotations, and `*` in signatures."""
    return all(
        "BinaryOperator" not in mutation.operator_name
        or any(
            start <= mutation.start_pos < end for start, end in _operators(mutation.module_path)
        )
        for mutation in item.mutations
    )


@cache
def _operators(module: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the span of each binary operator of a module: the end of its left operand and the begin of the right."""
    tree = ast.parse((COPY / module).read_text())
    annotations = {
        annotation
        for node in ast.walk(tree)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if annotation
    }
    operations: list[ast.BinOp] = []
    unread_nodes: list[ast.AST] = [tree]
    while unread_nodes:
        node = unread_nodes.pop()
        operations += [node] if isinstance(node, ast.BinOp) else []
        unread_nodes += [child for child in ast.iter_child_nodes(node) if child not in annotations]
    return [
        (
            (operation.left.end_lineno or 0, operation.left.end_col_offset or 0),
            (operation.right.lineno, operation.right.col_offset),
        )
        for operation in operations
    ]


def _judged(work: WorkDB) -> list[tuple[WorkItem, WorkResult]]:
    items = {item.job_id: item for item in work.work_items}
    return [(items[job], result) for job, result in work.results]


def _show(item: WorkItem, result: WorkResult) -> None:
    for mutation in item.mutations:
        print(f"SURVIVED {mutation.module_path}:{mutation.start_pos[0]} {mutation.operator_name}")
    print(result.diff or "")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--room", metavar="ROOM", help="a folder or file of src/treeclaim")
    parser.add_argument("--sample", type=int, metavar="N", help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1, help="which are drawn")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="time for the tests of one")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
