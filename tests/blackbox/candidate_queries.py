# SPDX-License-Identifier: Apache-2.0
"""A random query for allocation candidates, in the grammar of a microversion."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tests.blackbox import pools
from tests.blackbox.pools import Pool

LIMIT = 16
REQUIRED = 17
MEMBER_OF = 21
FORBIDDEN_TRAITS = 22
MEMBER_OF_REPEATED = 24
GROUPS = 25
IN_TREE = 31
FORBIDDEN_AGGREGATES = 32
ANY_SUFFIX = 33
ROOT_REQUIRED = 35
SAME_SUBTREE = 36
ANY_TRAITS = 39

Parameters: TypeAlias = list[tuple[str, str]]


def resources(pool: Pool, most: int = 2) -> str:
    """Return 1 to `most` classes with amounts; rarely a malformed class."""
    if pool.chance(0.02):
        return pool.random.choice(
            ("", "VCPU", "VCPU:0", "VCPU:x", "VCPU:1,", "VCPU:-1", "VCPU:1:1")
        )
    names = {pool.resource_class() for _ in range(pool.random.randint(1, most))}
    return ",".join(
        f"{name}:{pool.random.choice((1, 1, 1, 2, 2, 4, 8))}" for name in sorted(names)
    )


def required(pool: Pool, minor: int) -> str:
    """A value of `required`."""
    names = [pool.trait() for _ in range(pool.random.choice((1, 1, 2)))]
    if minor >= ANY_TRAITS and pool.chance(0.3):
        return "in:" + ",".join(names)
    if minor >= FORBIDDEN_TRAITS or pool.chance(0.03):
        names = [f"!{name}" if pool.chance(0.35) else name for name in names]
    if pool.chance(0.02):
        names.append("")
    return ",".join(names)


def member_of(pool: Pool, minor: int) -> str:
    """A value of `member_of`."""
    value = pool.aggregate()
    if pool.chance(0.4):
        value = f"in:{value},{pool.aggregate()}"
    if pool.chance(0.3) and (minor >= FORBIDDEN_AGGREGATES or pool.chance(0.05)):
        value = f"!{value}"
    return value + "," if pool.chance(0.02) else value


def candidate_query(pool: Pool, minor: int) -> Parameters:
    """A query that a service at `minor` understands, most of the time."""
    suffixes = _suffixes(pool, minor)
    groups = suffixes if suffixes and pool.chance(0.4) else ["", *suffixes]
    parameters = [pair for suffix in groups for pair in _group(pool, minor, suffix)]
    if minor >= SAME_SUBTREE and pool.chance(0.3):
        parameters += _same_subtree(pool, minor, suffixes)
    if (len(suffixes) > 1 or pool.chance(0.1)) and minor >= GROUPS and not pool.chance(0.02):
        parameters.append(("group_policy", pool.random.choice(("none", "isolate"))))
    if minor >= ROOT_REQUIRED and pool.chance(0.12):
        parameters.append(("root_required", required(pool, FORBIDDEN_TRAITS)))
    if minor >= LIMIT and pool.chance(0.12):
        parameters.append(("limit", pool.random.choice(("1", "2", "5", "1000"))))
    if pool.chance(0.06):
        parameters += _oddity(pool)
    pool.random.shuffle(parameters)
    return parameters


def _suffixes(pool: Pool, minor: int) -> list[str]:
    if minor < GROUPS:
        return []
    count = pool.random.choice((0, 0, 1, 1, 2, 2, 3))
    if minor < ANY_SUFFIX:
        return [str(number) for number in range(1, count + 1)]
    names = pool.random.sample(("1", "2", "_NET", "-a", "01", "x"), count)
    return [name.replace("x", "x" * 64) for name in names]


def _group(pool: Pool, minor: int, suffix: str, *, with_resources: bool = True) -> Parameters:
    parameters = []
    if with_resources:
        value = resources(pool, most=1 if suffix else 3)
        parameters.append((f"resources{suffix}", value))
    if minor >= REQUIRED:
        repeat = 2 if minor >= ANY_TRAITS and pool.chance(0.15) else 1
        if pool.chance(0.22):
            parameters += [(f"required{suffix}", required(pool, minor)) for _ in range(repeat)]
    if minor >= MEMBER_OF and pool.chance(0.2):
        repeat = 2 if minor >= MEMBER_OF_REPEATED and pool.chance(0.2) else 1
        parameters += [(f"member_of{suffix}", member_of(pool, minor)) for _ in range(repeat)]
    if minor >= IN_TREE and pool.chance(0.1):
        parameters.append((f"in_tree{suffix}", pool.provider()))
    return parameters


def _same_subtree(pool: Pool, minor: int, suffixes: list[str]) -> Parameters:
    """Tie suffixed groups together, with a resourceless one among them now and then."""
    parameters: Parameters = []
    names = list(suffixes)
    if names and pool.chance(0.4):
        names.append("_TOP")
        parameters.append(("required_TOP", pool.trait()))
        if pool.chance(0.2):
            parameters.append(("member_of_TOP", member_of(pool, minor)))
    if names:
        chosen = pool.random.sample(names, pool.random.randint(1, len(names)))
        if "_TOP" in names and "_TOP" not in chosen:
            chosen.append("_TOP")
        parameters.append(("same_subtree", ",".join(chosen)))
    return parameters


def _oddity(pool: Pool) -> Parameters:
    oddities: tuple[Callable[[], Parameters], ...] = (
        lambda: [("limit", pool.random.choice(("0", "-1", "cow", "", "01")))],
        lambda: [("group_policy", "bogus")],
        lambda: [("colour", "red")],
        lambda: [("resources01", "VCPU:1")],
        lambda: [("resources1@", "VCPU:1")],
        lambda: [("same_subtree", pool.random.choice(("", "nobody", ",")))],
        lambda: [("required_LONE", pools.STANDARD_TRAITS[0])],
        lambda: [("member_of_LONE", pool.aggregate())],
        lambda: [("in_tree_LONE", pool.provider())],
        lambda: [("in_tree", "word")],
        lambda: [("member_of", "word")],
        lambda: [("required", "HW_NUMA_ROOT,!HW_NUMA_ROOT")],
        lambda: [("root_required", "HW_NUMA_ROOT"), ("root_required", "HW_NUMA_ROOT")],
        lambda: [("root_required", "HW_NUMA_ROOT,!HW_NUMA_ROOT")],
        lambda: [("root_required", "in:HW_NUMA_ROOT")],
        lambda: [("resources", f"{pools.UNKNOWN_CLASS}:1")],
        lambda: [("resources", "VCPU:2147483648")],
    )
    return pool.random.choice(oddities)()
