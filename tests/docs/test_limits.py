# SPDX-License-Identifier: Apache-2.0
"""The waits, and their limits in seconds, that the page about operation tells are those in force."""

import re

from tests.paths import ROOT
from treeclaim.replica import question
from treeclaim.store.database import timeouts
from treeclaim.store.database.timeouts import Timeouts
from treeclaim.store.feed import probe, shards
from treeclaim.store.schema import revisions
from treeclaim.store.writes import group_commit, groups

PAGE = (ROOT / "docs" / "operate.md").read_text()

WITHOUT_AN_OPTION = {
    "in a transaction of several clients' claims": group_commit._LOCK_SECONDS,
    "for a shard of the change feed": shards.LOCK_SECONDS,
    "before a claim begins another beside it": groups.PATIENCE,
    "for a byte from a connected server": Timeouts().silence,
    "the same while everything is read": Timeouts().load_silence,
    "for the answer to whether anything is new": timeouts.PROBE_SECONDS,
    "for another thread that asks whether": probe.TURN_SECONDS,
    "for the inventory in memory": question.LONGEST_WAIT,
    "for a connection of the pool": timeouts.POOL_SECONDS,
    "for another process that creates the schema": revisions._LOCK_WAIT,
}
"""Waits whose limit no option of ours sets, by words of their row."""


def rows(heading):
    """The cells of the first table below a heading, without the first two lines."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_documented_waits_match_their_limits():
    waits = {cells[0]: (cells[1], cells[2]) for cells in rows("Waits and their limits")}
    options = {f"database_{name}_timeout" for name in Timeouts.__dataclass_fields__}
    for wait, (seconds, setting) in waits.items():
        number = float(re.match(r"[0-9.]+", seconds)[0])
        name = setting.strip("`")
        if name in options:
            options.remove(name)
            assert number == getattr(Timeouts(), name[len("database_") : -len("_timeout")]), wait
        else:
            (limit,) = [limit for words, limit in WITHOUT_AN_OPTION.items() if words in wait]
            assert number == limit, wait
    assert options == set()
    assert len(waits) == len(Timeouts.__dataclass_fields__) + len(WITHOUT_AN_OPTION)
