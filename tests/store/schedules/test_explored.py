# SPDX-License-Identifier: Apache-2.0
"""What was explored once is explored again as soon as anything that takes part in it changes."""

import shutil

import pytest

from tests.paths import ROOT
from tests.store.schedules.explored import SHARE, digest, share_of

CODE = "src/treeclaim/store/operations/allocations/claims.py"


@pytest.fixture
def checkout(tmp_path):
    """What the digest is made of, to be changed."""
    for folder in ("src/treeclaim/store", "src/treeclaim/model", "tests/store/schedules"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "requirements").mkdir()
    shutil.copy(ROOT / "requirements/runtime.txt", tmp_path / "requirements")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "former", "new"),
    [
        (CODE, "return", "return not"),
        ("tests/store/schedules/cases.py", "PREEMPTIONS = 2", "PREEMPTIONS = 1"),
        ("requirements/runtime.txt", "psycopg==", "psycopg==9"),
    ],
)
def test_a_change_of_what_takes_part_has_all_explored_again(checkout, path, former, new):
    before = digest(checkout)
    changed = checkout / path
    text = changed.read_text()
    assert former in text
    changed.write_text(text.replace(former, new, 1))
    assert digest(checkout) != before


def test_comments_and_docstrings_take_no_part(checkout):
    before = digest(checkout)
    changed = checkout / CODE
    changed.write_text(f'"""Other words."""\n# A comment.\n{changed.read_text()}')
    assert digest(checkout) == before == digest()


def test_as_many_commits_as_there_are_shares_try_everything():
    names = [f"pair {number}" for number in range(100)]
    shares = [share_of(names, number) for number in range(SHARE)]
    assert frozenset().union(*shares) == set(names)
    assert sum(map(len, shares)) == len(names)
