# SPDX-License-Identifier: Apache-2.0
"""Reads contract page 95: models, and requests with their exact answers."""

import re
from dataclasses import dataclass, field

from tests.paths import ROOT
from tests.reference.notation import candidate_of, listed, world_of
from tests.reference.world import World

PAGE = ROOT / "docs" / "contract" / "95-worked-examples.md"

_SECTION = re.compile(r"^## (\d+)\. (.*)$", re.MULTILINE)
_MODEL = re.compile(r"```\n(.*?)```", re.DOTALL)
_USED = re.compile(r"^Used before the requests: (.*)\.$", re.MULTILINE)
_EXAMPLE = re.compile(
    r"\*\*(?P<number>\d+\.\d+)\*\*\s+`GET /allocation_candidates\?(?P<query>[^`]*)`\s*"
    r"(?:\(microversion (?P<version>[\d.]+)\))?(?P<rest>.*?)(?=\n\*\*\d|\Z)",
    re.DOTALL,
)
_ROW = re.compile(
    r"^\| (?P<number>\d+\.\d+) \| (?P<version>[\d.]+) \| `(?P<query>[^`]*)` \| "
    r"(?P<candidates>\d+) \| (?P<summaries>\d+) \|$",
    re.MULTILINE,
)
_CANDIDATE = re.compile(r"^- (\S.*?)$", re.MULTILINE)
_EXACTLY = re.compile(r"Exactly (\d+) of the (\d+) candidates .*summaries \((\d+) entries\)")


@dataclass(frozen=True)
class Example:
    """A request and its answer.

    Attributes:
        number: As on the page.
        query: With <name> for uuids of providers and {A} for those of aggregates.
        version: Microversion.
        candidates: Expected (takes, mappings) pairs by name; None where only numbers are given.
        candidate_count: How many.
        summary_names: Keys of the summaries; None where the page does not list them.
        summary_count: How many; None where unknown.
        subset_of: Number of candidates without the limit, where the page says "N of M".
    """

    number: str
    query: str
    version: str
    candidates: list | None
    candidate_count: int
    summary_names: set | None
    summary_count: int | None
    subset_of: int | None = None


@dataclass
class Section:
    """A model with its examples."""

    number: str
    title: str
    world: World
    used: dict
    examples: list = field(default_factory=list)


def sections():
    """Return all sections of the page."""
    text = PAGE.read_text(encoding="utf-8")
    starts = list(_SECTION.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return [
        _section(start.group(1), start.group(2), text[start.end() : end])
        for start, end in zip(starts, ends, strict=True)
    ]


def _section(number, title, text):
    model = _MODEL.search(text)
    used = _USED.search(text)
    section = Section(
        number, title, world_of(model.group(1)), _used(used.group(1) if used else "")
    )
    for match in _EXAMPLE.finditer(text):
        section.examples.append(_example(match))
    for match in _ROW.finditer(text):
        section.examples.append(
            Example(
                match["number"],
                match["query"],
                match["version"],
                candidates=None,
                candidate_count=int(match["candidates"]),
                summary_names=None,
                summary_count=int(match["summaries"]),
            )
        )
    return section


def _used(text):
    """Read `h1 VCPU:3, h2 VCPU:1`."""
    used = {}
    for part in listed(text):
        provider, amount = part.split(" ")
        name, number = amount.split(":")
        used.setdefault(provider, {})[name] = int(number)
    return used


def _example(match):
    remainder = match["rest"]
    version = match["version"] or "1.39"
    exactly = _EXACTLY.search(remainder)
    if exactly:
        count, of, entries = map(int, exactly.groups())
        return Example(match["number"], match["query"], version, None, count, None, entries, of)
    candidates = [
        candidate_of(candidate_match[1])
        for candidate_match in _CANDIDATE.finditer(remainder)
        if not candidate_match[1].startswith("(none")
    ]
    summaries = re.search(r"^provider_summaries: (.*)$", remainder, re.MULTILINE)
    names = set() if "(none:" in remainder else None
    if summaries:
        names = {word.split(" ")[0] for word in re.split(r"[,;] ", summaries.group(1))}
    return Example(
        match["number"], match["query"], version, candidates, len(candidates), names, None
    )
