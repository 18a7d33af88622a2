# SPDX-License-Identifier: Apache-2.0
"""Flavors to queries, as the granular-request design describes (contract page 97, section 4).

Documents have flavors as Nova's API and OpenStack's client write them, or by their names.
"""

import math
import re
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
"""Parameters of which a flavor can have several, by a number at the end, as in `where:1`."""

_NUMBER = re.compile(":[0-9]+$")

_LOOKS_GROUPED = re.compile(rf"({_NAMES})([0-9_].*)?")

_WHOLE = frozenset(each.name for each in QUERY_PARAMETERS if not each.of_group)

_OWN = ("VCPU", "MEMORY_MB", "DISK_GB")

_MIB_IN_GIB = 1024


class FlavorError(ValueError):
    """An extra spec cannot be read; the message names its key."""


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


def make_query_parameters(flavor: Flavor) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a search for a flavor, in order; extra specs of other kinds are left alone.

    An amount of 0 removes a class that the flavor itself would have given.

    Raises:
        FlavorError: for a key of the forms known here that cannot be read.
    """
    sizes = (flavor.vcpus, flavor.ram, flavor.all_disk)
    groups = {"": _Group(dict(zip(_OWN, sizes, strict=True)))}
    further_parameters: list[tuple[str, str]] = []
    for key, value in flavor.extra_specs.items():
        text = str(value)
        name = find_parameter_name(key)
        if name in _WHOLE or _GROUPED.fullmatch(name):
            further_parameters.append((name, text))
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
    return (*parameters, *further_parameters)


def find_parameter_name(key: str) -> str:
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


SIZE_MEMBERS = {
    "vcpus": "vcpus",
    "ram": "ram",
    "disk": "disk",
    "ephemeral": "ephemeral",
    "os-flv-ext-data:ephemeral": "ephemeral",
    "swap": "swap",
}
"""Resource class of each member with an amount, in lower case, as tables of `openstack` differ."""

_SPEC_MEMBERS = ("extra_specs", "properties")
"""Members with extra specs, as Nova's API and as OpenStack's client call them."""

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
"""Members of flavors without a meaning to Placement."""

_PROPERTY = re.compile(r"([^\s=,']+)='([^']*)'")


def parse_flavors(document: Any) -> dict[str, Flavor]:
    """Return the flavors of a document by name: one flavor, a list of them, or each by its name.

    Raises:
        FlavorError: for what is not a flavor, with the name of the one that is not.
    """
    if isinstance(document, Mapping) and not _is_flavor(document):
        return {str(name): _flavor_named(str(name), entry) for name, entry in document.items()}
    flavors: dict[str, Flavor] = {}
    times: dict[str, int] = {}
    for number, entry in enumerate(document if isinstance(document, list) else [document], 1):
        name = _name_of(entry) or f"flavor {number}"
        times[name] = times.get(name, 0) + 1
        flavors[f"{name} ({times[name]})" if times[name] > 1 else name] = _flavor_named(
            name, entry
        )
    return flavors


def parse_flavor(document: Mapping[Any, Any], *, is_typed: bool = True) -> Flavor:
    """Return the flavor that a mapping describes.

    Args:
        document: With the members of Nova's API or of OpenStack's client.
        is_typed: Whether people may have written it, so that an unknown member is refused;
            a newer Nova may have more members.

    Raises:
        FlavorError: for an invalid amount, and for an unknown member.
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
    """Return an amount; an empty text or null stands for none.

    Raises:
        FlavorError: if it is another thing.
    """
    text = "0" if value is None or value == "" else _text(name, value)
    if not re.fullmatch("[0-9]{1,10}", text):
        raise FlavorError(f"{name}: {text[:40]!r} is not an amount")
    return int(text)


def _is_flavor(document: Mapping[Any, Any]) -> bool:
    """Return whether a mapping is one flavor, and not several by their names."""
    return not all(isinstance(entry, Mapping) for entry in document.values()) or any(
        str(name).lower() in _SPEC_MEMBERS for name in document
    )


def _name_of(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return ""
    lower = {str(name).lower(): value for name, value in entry.items()}
    return str(lower.get("name") or lower.get("id") or "")


def _flavor_named(name: str, entry: Any) -> Flavor:
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
    """Return a value as a text: numbers and truths are written without quotes in YAML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        raise FlavorError(f"{name}: it is not a text")
    return str(value)
