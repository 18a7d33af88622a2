# SPDX-License-Identifier: Apache-2.0
"""Flavors to queries, as the granular-request design describes (contract page 97, section 4)."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from treeclaim.client.errors import FlavorError
from treeclaim.client.requests.queries import CandidateQuery
from treeclaim.model.query_parameters import QUERY_PARAMETERS, split_name

_SUFFIX = r"((?:[1-9][0-9]*|_[a-zA-Z0-9_-]{1,63})?)"
_ITEMS = "|".join(each.flavor_items for each in QUERY_PARAMETERS if each.flavor_items)
_KEY = re.compile(rf"({_ITEMS}){_SUFFIX}:([A-Z0-9_]+)")
_LOOKS_LIKE_KEY = re.compile(rf"({_ITEMS})[^:]*:")
_NAMES = "|".join(
    each.name for each in QUERY_PARAMETERS if each.of_group and not each.flavor_items
)
_GROUPED = re.compile(rf"({_NAMES}){_SUFFIX}")
NUMBERED = frozenset(each.name for each in QUERY_PARAMETERS if each.flavor_numbers)
"""Parameters that a flavor has several of by a number at the end, as in `where:1`."""

_NUMBER = re.compile(":[0-9]+$")
_LOOKS_GROUPED = re.compile(rf"({_NAMES})([0-9_].*)?")
_WHOLE = frozenset(each.name for each in QUERY_PARAMETERS if not each.of_group)
_OWN = ("VCPU", "MEMORY_MB", "DISK_GB")
_MIB_IN_GIB = 1024


@dataclass(frozen=True, slots=True)
class Flavor:
    """The request of a flavor.

    Attributes:
        vcpus: Processors.
        ram: MiB of memory.
        disk: GiB of disk.
        extra_specs: Values by key.
        ephemeral: GiB of further disk.
        swap: MiB of further disk.
    """

    vcpus: int = 0
    ram: int = 0
    disk: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    ephemeral: int = 0
    swap: int = 0

    @property
    def all_disk(self) -> int:
        """Return GiB of all disk on the host, as Nova sums it: swap takes whole ones."""
        return self.disk + self.ephemeral + math.ceil(self.swap / _MIB_IN_GIB)


@dataclass(slots=True)
class _Group:
    resources: dict[str, int] = field(default_factory=dict)
    traits: list[str] = field(default_factory=list)


def query_of(flavor: Flavor) -> CandidateQuery:
    """Return the query for candidates of a flavor; extra specs of other kinds are left alone.

    An amount of 0 removes a class that the flavor itself would have given.

    Raises:
        FlavorError: for a key of the forms known here that cannot be read.
    """
    sizes = (flavor.vcpus, flavor.ram, flavor.all_disk)
    groups = {"": _Group(dict(zip(_OWN, sizes, strict=True)))}
    others: list[tuple[str, str]] = []
    for key, value in flavor.extra_specs.items():
        text = str(value)
        name = named(key)
        if name in _WHOLE or _GROUPED.fullmatch(name):
            others.append((name, text))
        elif _LOOKS_LIKE_KEY.match(key):
            _read(groups, key, text)
        elif _LOOKS_GROUPED.fullmatch(key):
            raise FlavorError(f"extra spec {key!r}: the suffix is neither a number nor _NAME")
    parameters: list[tuple[str, str]] = []
    for suffix, group in groups.items():
        amounts = ",".join(f"{name}:{n}" for name, n in group.resources.items() if n)
        if amounts:
            parameters.append((f"resources{suffix}", amounts))
        if group.traits:
            parameters.append((f"required{suffix}", ",".join(group.traits)))
    return CandidateQuery((*parameters, *others))


def named(key: str) -> str:
    """Return the name of the parameter that a key may stand for: without its number, if it has one."""
    name = _NUMBER.sub("", key)
    is_numbered = name != key and split_name(name)[0] in NUMBERED
    return name if is_numbered else key


def _read(groups: dict[str, _Group], key: str, value: str) -> None:
    match = _KEY.fullmatch(key)
    if match is None:
        raise FlavorError(
            f"extra spec {key!r}: expected resources[N|_NAME]:CLASS or trait[N|_NAME]:TRAIT"
        )
    kind, suffix, name = match.groups()
    group = groups.setdefault(suffix, _Group())
    if kind == "trait":
        if value not in ("required", "forbidden"):
            raise FlavorError(f"extra spec {key!r}: {value!r} is not required or forbidden")
        group.traits.append(name if value == "required" else f"!{name}")
        return
    if not re.fullmatch("[0-9]+", value):
        raise FlavorError(f"extra spec {key!r}: {value!r} is not an amount")
    amount = int(value)
    if not amount and (suffix or name not in _OWN):
        raise FlavorError(
            f"extra spec {key!r}: an amount of 0 only removes VCPU, MEMORY_MB or DISK_GB"
        )
    group.resources[name] = amount
