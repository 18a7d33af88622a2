# SPDX-License-Identifier: Apache-2.0
"""Reads providers and candidates as contract page 95 writes them."""

import re

import yaml

from tests.reference.world import Provider, Stock, World

_MODEL_LINE = re.compile(
    r"(?P<indent> *)(?P<name>[\w.]+):\s*(?P<stock>\{.*\})?\s*"
    r"(?:traits\[(?P<traits>[^\]]*)\])?\s*(?:aggs\[(?P<aggs>[^\]]*)\])?\s*"
)
_CANDIDATE = re.compile(r"(?P<takes>\S.*?)(?:\s+mappings\{(?P<mappings>.*)\})?")
_TAKES = re.compile(r"([\w.]+)\(([^)]*)\)")


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
    """Read a candidate: what it takes, and which providers serve which group."""
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
