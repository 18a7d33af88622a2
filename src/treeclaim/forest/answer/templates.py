# SPDX-License-Identifier: Apache-2.0
"""Candidates as text with holes for the UUIDs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.table.columns import Integers
from treeclaim.model.request import BodyForm

FEW_SLOTS = 4
"""Slots up to which comparing all pairs costs less than sorting the slots of each candidate."""

MOST_COMPARISONS = 4_000_000
"""Comparisons of pairs of slots in one array operation."""

LARGEST_CODED_PATTERN = 15
"""Slots up to which the digits of a pattern fit into one int64."""

Pattern = tuple[int, ...]
"""For each slot, the first slot with the same provider."""

_TEMPLATE_BYTES = 16_000_000
"""Bytes of templates, each counted with its plan, which it keeps alive."""

_HOLE_BYTES = 150
"""Memory that is counted for a hole."""

_KEY_BYTES = 500
"""Memory that is counted for the key of a template; a pattern takes less than the holes."""

_HOLE = re.compile(rb"\*(\d{35})")
"""The first slot of a provider, in place of its UUID; names contain no star."""


@dataclass(frozen=True, slots=True)
class Template:
    """The JSON of one candidate, followed by a comma, with holes of 36 characters.

    Attributes:
        text: ASCII.
        holes: By slot: the offsets for the UUID of its provider.
        nbytes: Memory of the template, its key and its plan.
    """

    text: bytes
    holes: dict[int, list[int]]
    nbytes: int


_templates = ByteCache(_TEMPLATE_BYTES, None, makes_read_only=False)
"""Templates by plan, pattern and form."""


def find_template(plan: Plan, pattern: Pattern, form: BodyForm) -> Template:
    """Return the template of a pattern in the form of a microversion (page 90, section 5.1)."""
    return _templates.get((plan, pattern, form), partial(_make_template, plan, pattern, form))


def _make_template(plan: Plan, pattern: Pattern, form: BodyForm) -> Template:
    amounts: dict[str, dict[str, int]] = {}
    serving: dict[str, dict[str, None]] = {}
    for first, slot in zip(pattern, plan.slots, strict=True):
        provider = f"*{first:035}"
        serving.setdefault(slot.suffix, {})[provider] = None
        for name, amount in slot.resources.items():
            units_by_class = amounts.setdefault(provider, {})
            units_by_class[name] = units_by_class.get(name, 0) + amount
    candidate: dict[str, Any] = {"allocations": _allocations(amounts, form)}
    if form.mappings:
        candidate["mappings"] = {suffix: list(providers) for suffix, providers in serving.items()}
    text = orjson.dumps(candidate) + b","
    holes: dict[int, list[int]] = {}
    for hole in _HOLE.finditer(text):
        holes.setdefault(int(hole[1]), []).append(hole.start())
    nbytes = len(text) + _HOLE_BYTES * sum(map(len, holes.values())) + _KEY_BYTES + plan.nbytes
    return Template(text, holes, nbytes)


def _allocations(amounts: dict[str, dict[str, int]], form: BodyForm) -> Any:
    if form.list_allocations:
        return [
            {"resource_provider": {"uuid": provider}, "resources": units_by_class}
            for provider, units_by_class in amounts.items()
        ]
    return {
        provider: {"resources": units_by_class} for provider, units_by_class in amounts.items()
    }


def split_by_pattern(block: npt.NDArray[np.int64]) -> Iterator[tuple[Pattern, Integers | slice]]:
    """Split a block of candidates (int64, shape (candidates, slots)) by pattern.

    Yields:
        A pattern, and the indices of its candidates.
    """
    if not len(block):
        return
    slots = block.shape[1]
    pattern = _common_pattern(block)
    if pattern is not None:
        yield pattern, slice(None)
        return
    step = max(MOST_COMPARISONS // slots**2, 1)
    for start in range(0, len(block), step):
        part = block[start : start + step]
        first = (part[:, :, None] == part[:, None, :]).argmax(axis=2)
        if (first == first[0]).all():
            yield tuple(first[0].tolist()), slice(start, start + len(part))
            continue
        patterns, which = _find_distinct(first)
        for number, digits in enumerate(patterns.tolist()):
            yield tuple(digits), start + np.flatnonzero(which == number)


def _common_pattern(block: npt.NDArray[np.int64]) -> Pattern | None:
    """Return the pattern common to all candidates; None if there is none, or finding it is expensive.

    With many slots, usually no candidate has a provider twice.
    """
    slots = block.shape[1]
    if slots > FEW_SLOTS:
        ordered = np.sort(block, axis=1)
        differ = bool((ordered[:, 1:] != ordered[:, :-1]).all())
        return tuple(range(slots)) if differ else None
    columns = np.ascontiguousarray(block.T)
    pattern = list(range(slots))
    for slot in range(slots):
        for earlier in range(slot):
            is_same = columns[earlier] == columns[slot]
            if is_same.all():
                pattern[slot] = pattern[earlier]
                break
            if is_same.any():
                return None
    return tuple(pattern)


def _find_distinct(
    patterns: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    slots = patterns.shape[1]
    if slots > LARGEST_CODED_PATTERN:
        distinct, which = np.unique(patterns, axis=0, return_inverse=True)
        return distinct, which.reshape(-1)
    codes = patterns @ (slots ** np.arange(slots, dtype=np.int64))
    _, at, which = np.unique(codes, return_index=True, return_inverse=True)
    return patterns[at], which
