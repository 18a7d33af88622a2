# SPDX-License-Identifier: Apache-2.0
"""What all passed once is made again as soon as anything that takes part in it changes."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest

from tests.extent import SLOW
from tests.paths import ROOT
from tests.sampling import (
    DATABASES,
    EXPLORATIONS,
    HISTORIES,
    HOLDS,
    PAGES,
    SAMPLES,
    SUITES,
    WORLDS,
    digest,
    sample_of,
    share_of,
)

WANTED = ("all", "share")
CODE = "src/treeclaim/store/operations/allocations/claims.py"


def checkout_of(sample, folder):
    """What the digest of a sample is made of, to be changed."""
    for part in (*sample.code, "requirements/runtime.txt"):
        made = folder / part
        if not made.exists():
            made.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, made)
    return folder


@pytest.mark.parametrize(
    ("sample", "path", "former", "new"),
    [
        (EXPLORATIONS, CODE, "return", "return not"),
        (EXPLORATIONS, "tests/store/schedules/cases.py", "PREEMPTIONS = 2", "PREEMPTIONS = 1"),
        (HOLDS, "tests/store/schedules/worlds.py", "HOLD", "OTHER"),
        (HISTORIES, CODE, "return", "return not"),
        (HISTORIES, "tests/reference/holds.py", "return", "return not"),
        (EXPLORATIONS, "requirements/runtime.txt", "psycopg==", "psycopg==9"),
        (SUITES, CODE, "return", "return not"),
        (SUITES, "tests/conformance/gabbits/aggregates.yaml", "generation: 4", "generation: 5"),
        (SUITES, "docs/contract/95-worked-examples.md", "VCPU", "MEMORY_MB"),
        (DATABASES, CODE, "return", "return not"),
        (DATABASES, "tests/faults/test_kills.py", "assert", "assert not"),
        (WORLDS, "src/treeclaim/forest/search.py", "return", "return not"),
        (WORLDS, "tests/reference/candidates.py", "return", "return not"),
        (PAGES, "src/treeclaim/ui/static/app.js", "import", "export"),
    ],
)
def test_a_change_of_what_takes_part_has_all_made_again(tmp_path, sample, path, former, new):
    checkout = checkout_of(sample, tmp_path)
    before = digest(sample, checkout)
    changed = checkout / path
    text = changed.read_text()
    assert former in text
    changed.write_text(text.replace(former, new, 1))
    assert digest(sample, checkout) != before


def test_comments_and_docstrings_take_no_part(tmp_path):
    checkout = checkout_of(EXPLORATIONS, tmp_path)
    before = digest(EXPLORATIONS, checkout)
    changed = checkout / CODE
    changed.write_text(f'"""Other words."""\n# A comment.\n{changed.read_text()}')
    assert digest(EXPLORATIONS, checkout) == before == digest(EXPLORATIONS)


@pytest.mark.parametrize(
    ("name", "sample"),
    [
        ("tests/faults/test_kills.py::test_kills[mariadb]", DATABASES),
        ("tests/faults/test_galera.py::test_a_node_is_cut_off", DATABASES),
        ("tests/faults/test_kills.py::test_kills[sqlite]", None),
        ("tests/properties/test_explanations_are_true.py::test_explanations_are_true", WORLDS),
        ("tests/ui/test_pages.py::test_each_page_works", PAGES),
        ("tests/api/test_work.py::test_work[postgresql]", None),
    ],
)
def test_a_test_without_a_mark_belongs_to_the_sample_of_its_folder(name, sample):
    assert sample_of(name) is sample


def test_a_page_says_what_all_samples_are():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    rows = page.partition("| sample | what takes part | share |")[2].partition("\n\n")[0]
    assert len(rows.splitlines()) == 2 + len(SAMPLES)


def test_as_many_commits_as_there_are_shares_try_everything():
    names = [f"pair {number}" for number in range(100)]
    shares = [share_of(names, number, 12) for number in range(12)]
    assert frozenset().union(*shares) == set(names)
    assert sum(map(len, shares)) == len(names)


@pytest.mark.slow
def test_a_share_of_all_pairs_of_writes_is_made():
    whole, share = (len(collected(wanted, "tests/store/schedules/pairs")) for wanted in WANTED)
    assert EXPLORATIONS.share == HOLDS.share
    # Of each of the two samples one more may be made, or one less.
    assert abs(share - whole / HOLDS.share) <= 2


@pytest.mark.slow
def test_a_share_has_all_that_the_quick_run_makes_and_of_the_rest_whole_units():
    whole, share = (sections_made(wanted) for wanted in WANTED)
    assert whole["sqlite"] == whole["mariadb"] == share["sqlite"]
    assert share["mariadb"].items() <= whole["mariadb"].items()
    for server in ("postgresql", "mariadb"):
        every, some = len(whole[server]), len(share[server])
        assert every // SUITES.share <= some <= every // SUITES.share + 1


def sections_made(wanted):
    """How many worked examples of each section a run makes, by database."""
    found = {kind: Counter() for kind in ("sqlite", "postgresql", "mariadb")}
    for name in collected(wanted, "tests/conformance/test_worked_examples.py"):
        if example := re.search(r"on_the_page\[(\w+)-(\d+)\.", name):
            kind, section = example.groups()
            found[kind][section] += 1
    return found


def collected(wanted, place):
    """The names of the tests of a folder or file that a run on all databases makes."""
    listed = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"),
            *("--databases=all", place),
        ],
        cwd=ROOT,
        env=os.environ | {"TREECLAIM_SAMPLED": wanted},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in listed.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_slow_tests_without_a_mark_exist():
    assert set() == SLOW - set(collected("all", "tests"))
