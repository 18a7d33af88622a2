# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.scale`: measure what operations cost, and write the tables of docs/scale.md."""

import argparse
from pathlib import Path

import orjson
from rich.console import Console

from bench.scale.coefficients import Coefficients
from bench.scale.measure import Sizes, coefficients
from bench.scale.page import page
from tests.databases import KINDS

_DOCS = Path(__file__).parents[2] / "docs"
FIGURES = _DOCS / "benchmarks" / "scale.json"
PAGE = _DOCS / "scale.md"


def read() -> list[Coefficients]:
    """Return what was measured last; nothing if nothing was."""
    if not FIGURES.exists():
        return []
    return [Coefficients.from_json(document) for document in orjson.loads(FIGURES.read_bytes())]


def main() -> None:
    """Measure what the options ask for, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--databases", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--operations", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each rate")
    parser.add_argument("--copies", type=int, default=100, help="of ten thousand providers")
    options = parser.parse_args()
    known = {costs.database: costs for costs in read()}
    sizes = Sizes(options.operations, options.seconds, options.copies)
    for kind in options.databases:
        Console().print(f"Measuring {kind}")
        known[kind] = coefficients(kind, sizes)
        documents = [known[name].as_json() for name in KINDS if name in known]
        FIGURES.write_bytes(orjson.dumps(documents, option=orjson.OPT_INDENT_2))
    PAGE.write_text(page(PAGE.read_text(), read()))


if __name__ == "__main__":
    main()
