# SPDX-License-Identifier: Apache-2.0
"""Flavors in documents: as Nova's API and OpenStack's client write them, or by their names.

The pages have the same in `ui/static/model/flavors.js`; both are held against
`tests/client/flavors.json`.
"""

import re
from collections.abc import Mapping
from typing import Any

from treeclaim.client.errors import FlavorError
from treeclaim.client.requests.flavors import Flavor
from treeclaim.client.spelling import unknown_word

SIZES = {
    "vcpus": "vcpus",
    "ram": "ram",
    "disk": "disk",
    "ephemeral": "ephemeral",
    "os-flv-ext-data:ephemeral": "ephemeral",
    "swap": "swap",
}
"""What each member with an amount gives; in small letters, as tables of `openstack` have others."""

SPECS = ("extra_specs", "properties")
"""Members with extra specs, as Nova's API and as OpenStack's client call them."""

OTHERS = (
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
"""Members that flavors have besides, and that say nothing to Placement."""

_PROPERTY = re.compile(r"([^\s=,']+)='([^']*)'")


def flavors_of(document: Any) -> dict[str, Flavor]:
    """Return the flavors of a document by name: one flavor, a list of them, or each by its name.

    Raises:
        FlavorError: for what is no flavor, with the name of the one that is not.
    """
    if isinstance(document, Mapping) and not _is_flavor(document):
        return {str(name): _named(str(name), entry) for name, entry in document.items()}
    flavors: dict[str, Flavor] = {}
    times: dict[str, int] = {}
    for number, entry in enumerate(document if isinstance(document, list) else [document], 1):
        name = _name_of(entry) or f"flavor {number}"
        times[name] = times.get(name, 0) + 1
        flavors[f"{name} ({times[name]})" if times[name] > 1 else name] = _named(name, entry)
    return flavors


def flavor_of(document: Mapping[Any, Any], *, is_typed: bool = True) -> Flavor:
    """Return the flavor that a mapping describes.

    Args:
        document: With the members of Nova's API or of OpenStack's client.
        is_typed: Whether people may have written it, so that a member that nobody knows is refused;
            a newer Nova may tell more.

    Raises:
        FlavorError: for an amount that is none, and for what nobody knows.
    """
    sizes: dict[str, int] = {}
    specs: dict[str, str] = {}
    for name, value in document.items():
        member = str(name).lower()
        if member in SIZES:
            amount = amount_of(str(name), value)
            if sizes.setdefault(SIZES[member], amount) != amount:
                raise FlavorError(f"{name}: it is given twice")
        elif member in SPECS:
            specs |= _specs(str(name), value)
        elif is_typed and member not in OTHERS:
            raise FlavorError(unknown_word(str(name), (*SIZES, *SPECS)))
    return Flavor(**sizes, extra_specs=specs)


def amount_of(name: str, value: Any) -> int:
    """Return an amount; what is none may be an empty text, or null.

    Raises:
        FlavorError: if it is another thing.
    """
    text = "0" if value is None or value == "" else _text(name, value)
    if not re.fullmatch("[0-9]{1,10}", text):
        raise FlavorError(f"{name}: {text[:40]!r} is not an amount")
    return int(text)


def _is_flavor(document: Mapping[Any, Any]) -> bool:
    """Tell whether a mapping is one flavor, and not several by their names."""
    return not all(isinstance(entry, Mapping) for entry in document.values()) or any(
        str(name).lower() in SPECS for name in document
    )


def _name_of(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return ""
    lower = {str(name).lower(): value for name, value in entry.items()}
    return str(lower.get("name") or lower.get("id") or "")


def _named(name: str, entry: Any) -> Flavor:
    if not isinstance(entry, Mapping):
        raise FlavorError(f"{name}: a flavor is a mapping of vcpus, ram, disk and extra_specs")
    try:
        return flavor_of(entry)
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
