# SPDX-License-Identifier: Apache-2.0
"""How much a run tries: a quick one, or everything."""

from tests.paths import ROOT

SLOW = frozenset((ROOT / "tests/slow.txt").read_text().splitlines())
"""Single tests that are slow without the mark, of which a whole function or file is quick: by their names as
pytest has them."""


class Extent:
    """What the modules that make tests while they are imported need to know before.

    Attributes:
        everything: Whether the run is one with `--databases=all`; told by `conftest.py`.
    """

    everything = False


def some_of(things, turn):
    """All of them in a run that tries everything; otherwise a third, another one each turn."""
    return things if Extent.everything else things[turn % 3 :: 3]
