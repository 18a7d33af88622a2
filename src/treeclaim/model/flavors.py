# SPDX-License-Identifier: Apache-2.0
"""Parses flavors, and translates them to queries (contract page 97, section 4).

A document contains flavors in the form of Nova's API or of OpenStack's client, or maps their names to them.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from treeclaim.model.names import unknown_word
from treeclaim.model.query.parameters import QUERY_PARAMETERS, split_name

_SUFFIX = r"((?:[1-9][0-9]*|_[a-zA-Z0-9_-]{1,63})?)"

_ITEMS = "|".join(each.flavor_items for each in QUERY_PARAMETERS if each.flavor_items)

_KEY = re.compile(rf"({_ITEMS}){_SUFFIX}:([A-Z0-9_]+)")

_LOOKS_LIKE_KEY = re.compile(rf"({_ITEMS})[^:]*:")

_NAMES = "|".join(
    each.name for each in QUERY_PARAMETERS if each.of_group and not each.flavor_items
)

_GROUPED = re.compile(rf"({_NAMES}){_SUFFIX}")

NUMBERED = frozenset(each.name for each in QUERY_PARAMETERS if each.flavor_numbers)
"""Parameters that a flavor may repeat with a number at the end, such as `where:1`."""

_NUMBER = re.compile(":[0-9]+$")

_LOOKS_GROUPED = re.compile(rf"({_NAMES})([0-9_].*)?")

_UNGROUPED = frozenset(each.name for each in QUERY_PARAMETERS if not each.of_group)

_SIZE_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")

_MIB_IN_GIB = 1024


class FlavorError(ValueError):
    """A flavor is invalid; the message names the member or the key of the extra spec."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor; `ram` and `swap` are in MiB, `disk` and `ephemeral` in GiB."""

    vcpus: int = 0
    ram: int = 0
    disk: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    ephemeral: int = 0
    swap: int = 0

    @property
    def all_disk(self) -> int:
        """Return the GiB of disk on the host; like Nova, round swap up."""
        return self.disk + self.ephemeral + math.ceil(self.swap / _MIB_IN_GIB)


@dataclass(slots=True)
class _Group:
    resources: dict[str, int] = field(default_factory=dict)
    traits: list[str] = field(default_factory=list)


def make_query_parameters(flavor: Flavor) -> tuple[tuple[str, str], ...]:
    """Return the query parameters of a flavor, in order; ignore extra specs without a parameter.

    An amount of 0 removes a class of the flavor's sizes.

    Raises:
        FlavorError: if an extra spec of a parameter is invalid.
    """
    sizes = (flavor.vcpus, flavor.ram, flavor.all_disk)
    groups = {"": _Group(dict(zip(_SIZE_CLASSES, sizes, strict=True)))}
    further_parameters: list[tuple[str, str]] = []
    for key, value in flavor.extra_specs.items():
        text = str(value)
        name = find_parameter_name(key)
        if name in _UNGROUPED or _GROUPED.fullmatch(name):
            further_parameters.append((name, text))
        elif _LOOKS_LIKE_KEY.match(key):
            _parse_item(groups, key, text)
        elif _LOOKS_GROUPED.fullmatch(key):
            raise FlavorError(f"extra spec {key!r}: the suffix is neither a number nor _NAME")
    parameters: list[tuple[str, str]] = []
    for suffix, group in groups.items():
        amounts = ",".join(
            f"{name}:{amount}" for name, amount in group.resources.items() if amount
        )
        if amounts:
            parameters.append((f"resources{suffix}", amounts))
        if group.traits:
            parameters.append((f"required{suffix}", ",".join(group.traits)))
    return (*parameters, *further_parameters)


def find_parameter_name(key: str) -> str:
    """Return an extra spec's key without the number of a repeated parameter."""
    name = _NUMBER.sub("", key)
    return name if split_name(name)[0] in NUMBERED else key


def _parse_item(groups: dict[str, _Group], key: str, value: str) -> None:
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
    if not amount and (suffix or name not in _SIZE_CLASSES):
        raise FlavorError(
            f"extra spec {key!r}: an amount of 0 only removes VCPU, MEMORY_MB or DISK_GB"
        )
    group.resources[name] = amount


SIZE_MEMBERS = {
    "vcpus": "vcpus",
    "ram": "ram",
    "disk": "disk",
    "ephemeral": "ephemeral",
    "os-flv-ext-data:ephemeral": "ephemeral",
    "swap": "swap",
}
"""Fields of `Flavor` by lower-case member; the tables of `openstack` differ in case."""

_SPEC_MEMBERS = ("extra_specs", "properties")
"""Members with extra specs: of Nova's API, and of OpenStack's client."""

_IGNORED_MEMBERS = (
    "id",
    "name",
    "description",
    "rxtx_factor",
    "rxtx factor",
    "links",
    "is_public",
    "is public",
    "is_disabled",
    "access_project_ids",
    "location",
    "original_name",
    "created_at",
    "updated_at",
    "os-flv-disabled:disabled",
    "os-flavor-access:is_public",
)
"""Members of flavors that a query does not depend on."""

_PROPERTY = re.compile(r"([^\s=,']+)='([^']*)'")


def parse_flavors(document: Any) -> dict[str, Flavor]:
    """Return the flavors of a document by name: of one flavor, a list, or a mapping of names to flavors.

    Raises:
        FlavorError: if an entry is not a flavor; the message has its name.
    """
    if isinstance(document, Mapping) and not _is_flavor(document):
        return {str(name): _parse_entry(str(name), entry) for name, entry in document.items()}
    flavors: dict[str, Flavor] = {}
    counts: Counter[str] = Counter()
    for number, entry in enumerate(document if isinstance(document, list) else [document], 1):
        name = _find_name(entry) or f"flavor {number}"
        counts[name] += 1
        key = f"{name} ({counts[name]})" if counts[name] > 1 else name
        flavors[key] = _parse_entry(name, entry)
    return flavors


def parse_flavor(document: Mapping[Any, Any], *, is_typed: bool = True) -> Flavor:
    """Return the flavor of a mapping with the members of Nova's API or of OpenStack's client.

    Unknown members are refused if a person typed the document; a newer Nova may add members.

    Raises:
        FlavorError: if an amount is invalid, or a member unknown.
    """
    sizes: dict[str, int] = {}
    specs: dict[str, str] = {}
    for name, value in document.items():
        member = str(name).lower()
        if member in SIZE_MEMBERS:
            amount = _parse_amount(str(name), value)
            if sizes.setdefault(SIZE_MEMBERS[member], amount) != amount:
                raise FlavorError(f"{name}: it is given twice")
        elif member in _SPEC_MEMBERS:
            specs |= _specs(str(name), value)
        elif is_typed and member not in _IGNORED_MEMBERS:
            raise FlavorError(unknown_word(str(name), (*SIZE_MEMBERS, *_SPEC_MEMBERS)))
    return Flavor(**sizes, extra_specs=specs)


def _parse_amount(name: str, value: Any) -> int:
    # Clients write null or an empty text for 0.
    text = "0" if value is None or value == "" else _text(name, value)
    if not re.fullmatch("[0-9]{1,10}", text):
        raise FlavorError(f"{name}: {text[:40]!r} is not an amount")
    return int(text)


def _is_flavor(document: Mapping[Any, Any]) -> bool:
    """Return whether a mapping is a flavor; otherwise it maps names to flavors."""
    return not all(isinstance(entry, Mapping) for entry in document.values()) or any(
        str(name).lower() in _SPEC_MEMBERS for name in document
    )


def _find_name(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return ""
    lower = {str(name).lower(): value for name, value in entry.items()}
    return str(lower.get("name") or lower.get("id") or "")


def _parse_entry(name: str, entry: Any) -> Flavor:
    if not isinstance(entry, Mapping):
        raise FlavorError(f"{name}: a flavor is a mapping of vcpus, ram, disk and extra_specs")
    try:
        return parse_flavor(entry)
    except FlavorError as error:
        raise FlavorError(f"{name}: {error}") from error


def _specs(name: str, value: Any) -> dict[str, str]:
    if isinstance(value, str):
        if _PROPERTY.sub("", value).strip(" ,\n"):
            raise FlavorError(f"{name}: it is not of the form KEY='VALUE', …")
        return dict(_PROPERTY.findall(value))
    if not isinstance(value, Mapping | None):
        raise FlavorError(f"{name}: it is not a mapping of extra specs")
    return {str(key): _text(f"extra spec {key!r}", spec) for key, spec in (value or {}).items()}


def _text(name: str, value: Any) -> str:
    """Return a value as a text; YAML parses unquoted numbers and truths."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        raise FlavorError(f"{name}: it is not a text")
    return str(value)
