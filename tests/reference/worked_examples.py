# SPDX-License-Identifier: Apache-2.0
"""Reads models, and requests with their exact answers, as contract page 95 writes them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.paths import ROOT
from tests.reference.world import Group, Provider, Request, Stock, World

PAGE = ROOT / "docs" / "contract" / "95-worked-examples.md"
BEYOND = Path(__file__).with_name("worlds.md")
"""Examples of the extension."""

_MODEL_LINE = re.compile(
    r"(?P<indent> *)(?P<name>[\w.]+):\s*(?P<stock>\{.*\})?\s*"
    r"(?:traits\[(?P<traits>[^\]]*)\])?\s*(?:aggs\[(?P<aggs>[^\]]*)\])?\s*"
)

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
_CANDIDATE_LINE = re.compile(r"^- (\S.*?)$", re.MULTILINE)
_CANDIDATE = re.compile(r"(?P<takes>\S.*?)(?:\s+mappings\{(?P<mappings>.*)\})?")
_TAKES = re.compile(r"([\w.]+)\(([^)]*)\)")
_EXACTLY = re.compile(r"Exactly (\d+) of the (\d+) candidates .*summaries \((\d+) entries\)")


@dataclass(frozen=True)
class Example:
    """A request and its answer.

    Attributes:
        number: As on the page.
        query: With <name> for uuids of providers and {A} for those of aggregates.
        version: Microversion, with that of the extension if the page is about the extension.
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

    @property
    def minor(self):
        """The minor number of the microversion of Placement."""
        return int(re.match(r"1\.(\d+)", self.version)[1])


@dataclass
class Section:
    """A model with its examples."""

    number: str
    title: str
    world: World
    examples: list = field(default_factory=list)


def sections(page=PAGE, version="1.39"):
    """Return all sections of a page; requests have `version` unless the page names another."""
    text = page.read_text(encoding="utf-8")
    starts = list(_SECTION.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return [
        _section(start.group(1), start.group(2), text[start.end() : end], version)
        for start, end in zip(starts, ends, strict=True)
    ]


def _section(number, title, text, version):
    used = _USED.search(text)
    amounts = _used(used.group(1) if used else "")
    world = world_of(_MODEL.search(text).group(1)).using(
        lambda provider, name, amount: amounts.get(provider, {}).get(name, amount)
    )
    section = Section(number, title, world)
    for match in _EXAMPLE.finditer(text):
        section.examples.append(_example(match, version))
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


def _example(match, version):
    remainder = match["rest"]
    version = match["version"] or version
    exactly = _EXACTLY.search(remainder)
    if exactly:
        count, of, entries = map(int, exactly.groups())
        return Example(match["number"], match["query"], version, None, count, None, entries, of)
    candidates = [
        candidate_of(candidate_match[1])
        for candidate_match in _CANDIDATE_LINE.finditer(remainder)
        if not candidate_match[1].startswith("(none")
    ]
    summaries = re.search(r"^provider_summaries: (.*)$", remainder, re.MULTILINE)
    names = set() if "(none:" in remainder else None
    if summaries:
        names = {word.split(" ")[0] for word in re.split(r"[,;] ", summaries.group(1))}
    return Example(
        match["number"], match["query"], version, candidates, len(candidates), names, None
    )


def world_of(text):
    """Read a model: a line for each provider, indented by two below its parent."""
    providers = []
    above = []
    for line in text.strip("\n").split("\n"):
        match = _MODEL_LINE.fullmatch(line)
        assert match, f"cannot read the model line {line!r}"
        depth = len(match["indent"]) // 2
        del above[depth:]
        # In YAML flow style a comma needs a colon and a blank between key and value.
        stock = re.sub(r"(\b\w+) (?=[\d.]+[,}])", r"\1: ", match["stock"] or "{}")
        providers.append(
            Provider(
                name=match["name"],
                parent=above[-1] if above else None,
                stock={
                    name: Stock(**inventory) if isinstance(inventory, dict) else Stock(inventory)
                    for name, inventory in yaml.safe_load(stock).items()
                },
                traits=frozenset(listed(match["traits"])),
                aggregates=frozenset(listed(match["aggs"])),
            )
        )
        above.append(match["name"])
    return World(tuple(providers))


def candidate_of(text):
    """Parse a candidate: its amounts, and the providers of each group."""
    match = _CANDIDATE.fullmatch(text)
    takes = frozenset(
        (provider, *_amount(part))
        for provider, amounts in _TAKES.findall(match["takes"])
        for part in listed(amounts)
    )
    if match["mappings"] is None:
        return takes, frozenset({("", frozenset(provider for provider, _, _ in takes))})
    return takes, frozenset(
        (suffix.strip().strip('"'), frozenset(listed(providers)))
        for suffix, providers in (word.split(":") for word in match["mappings"].split(";"))
    )


def listed(text):
    """The parts of a text between its commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _amount(text):
    name, number = text.split(":")
    return name, int(number)


_PARAMETER = re.compile(r"(root_)?(resources|required|member_of|in_tree|in_subtree)(.*)")


def request_of(example):
    """Return the request of an example, in the form of the reference."""
    pairs = [pair.split("=", 1) for pair in example.query.split("&")]
    # Parameters that are no conditions have their first value.
    first_values = dict(reversed(pairs))
    values, roots = {"": {}}, {}
    for name, value in pairs:
        match = _PARAMETER.fullmatch(name)
        if match:
            of_group = roots if match[1] else values.setdefault(match[3], {})
            of_group.setdefault(match[2], []).append(value)
    lists = [listed(value) for name, value in pairs if name == "same_subtree"]
    groups = [
        _group(suffix, members, example.minor) for suffix, members in values.items() if members
    ]
    is_isolated = first_values.get("group_policy") == "isolate"
    return Request(
        groups=tuple(groups),
        root=_group("", roots, example.minor),
        same_subtree=tuple(
            (
                tuple(name for name in names if not name.startswith("!")),
                tuple(name[1:] for name in names if name.startswith("!")),
            )
            for names in lists
        ),
        isolated=frozenset(filter(None, values)) if is_isolated else frozenset(),
        can_split=frozenset(listed(first_values.get("can_split"))),
        split_policy=first_values.get("split_policy", "pack"),
        nested=example.minor >= 29,
    )


def _group(suffix, values, minor):
    resources = values.get("resources", [""])[-1]
    required = values.get("required", [])
    required = list(_conditions(required if minor >= 39 else required[-1:]))
    members = list(_conditions(values.get("member_of", [])))
    return Group(
        suffix=suffix,
        resources=dict(map(_amount, listed(resources))),
        required=tuple(names for names, is_wanted in required if is_wanted),
        forbidden=frozenset().union(*(names for names, is_wanted in required if not is_wanted)),
        member_of=tuple(names for names, is_wanted in members if is_wanted),
        not_member_of=frozenset().union(*(names for names, is_wanted in members if not is_wanted)),
        in_tree=tuple(name for value in values.get("in_tree", ()) for name in _names(value)),
        in_subtree=tuple(name for value in values.get("in_subtree", ()) for name in _names(value)),
    )


def _conditions(values):
    """Return sets of names of which one is wanted, or none is; `in:` makes one set of all."""
    for value in values:
        is_set = value.removeprefix("!").startswith("in:")
        for entry in [value] if is_set else listed(value):
            yield frozenset(_names(entry.removeprefix("!"))), not entry.startswith("!")


def _names(value):
    return [name.strip("<>{}") for name in listed(value.removeprefix("in:"))]
