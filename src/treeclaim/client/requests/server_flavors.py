# SPDX-License-Identifier: Apache-2.0
"""Nova's flavors as queries: what Nova would ask Placement for a server of a flavor.

The rules are those of Nova's documentation of flavors and extra specs; contract page 97,
section 4, has those that all flavors share.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from treeclaim.client.errors import FlavorError
from treeclaim.client.requests.flavors import Flavor, query_of
from treeclaim.client.requests.queries import CandidateQuery

_MIB_IN_GIB = 1024
_ROOT_REQUIRED = "root_required"
_ENABLED = "!COMPUTE_STATUS_DISABLED"
"""Nova never asks for hosts that an operator has disabled."""

_CPU_POLICY = "hw:cpu_policy"
_DEDICATED_MASK = "hw:cpu_dedicated_mask"
_EMULATOR_THREADS = "hw:emulator_threads_policy"
_THREAD_POLICY = "hw:cpu_thread_policy"
_MEMORY_ENCRYPTION = "hw:mem_encryption"
_TPM_VERSION = "hw:tpm_version"
_TRANSLATED = (
    _CPU_POLICY,
    _DEDICATED_MASK,
    _EMULATOR_THREADS,
    _THREAD_POLICY,
    _MEMORY_ENCRYPTION,
    _TPM_VERSION,
)

_JUDGED_BY_NOVA = (
    "accel:",
    "aggregate_instance_extra_specs:",
    "capabilities:",
    "hw:",
    "pci_passthrough:",
)
"""Beginnings of extra specs by which Nova's own filters choose hosts, after Placement has."""

_THREADS = {"isolate": "forbidden", "require": "required"}
"""What a thread policy says of hosts with hyperthreading."""


@dataclass(frozen=True, slots=True)
class ServerFlavor:
    """What Nova asks for a flavor.

    Attributes:
        query: The question to Placement.
        unasked: Extra specs by which Nova judges hosts itself, with what it knows alone.
    """

    query: CandidateQuery
    unasked: tuple[str, ...]


def server_flavor(told: Mapping[str, Any], extra_specs: Mapping[str, str]) -> ServerFlavor:
    """Return what Nova asks for a server that boots from the flavor's own disk.

    Args:
        told: The flavor, as the compute API tells it.
        extra_specs: Of the flavor.

    Raises:
        FlavorError: if an amount or an extra spec cannot be read.
    """
    swap = _amount(told, "swap")
    disk = _amount(told, "disk") + _amount(told, "OS-FLV-EXT-DATA:ephemeral")
    flavor = Flavor(
        vcpus=_amount(told, "vcpus"),
        ram=_amount(told, "ram"),
        disk=disk + math.ceil(swap / _MIB_IN_GIB),
        extra_specs={**_translated(_amount(told, "vcpus"), extra_specs), **extra_specs},
    )
    query = query_of(flavor)
    if _ROOT_REQUIRED not in dict(query.parameters):
        query = query.with_parameter(_ROOT_REQUIRED, _ENABLED)
    unasked = (
        name
        for name in sorted(extra_specs)
        if name.startswith(_JUDGED_BY_NOVA) and name not in _TRANSLATED
    )
    return ServerFlavor(query, tuple(unasked))


def _amount(told: Mapping[str, Any], name: str) -> int:
    try:
        # What is none may be an empty text.
        return int(told.get(name) or 0)
    except (TypeError, ValueError) as error:
        raise FlavorError(f"{name}: {told[name]!r} is not an amount") from error


def _translated(vcpus: int, specs: Mapping[str, str]) -> dict[str, str]:
    """Return the extra specs that say in Placement's words what some of Nova's say."""
    found: dict[str, str] = {}
    dedicated = _dedicated(vcpus, specs)
    if dedicated:
        shared = vcpus - dedicated
        isolated = int(specs.get(_EMULATOR_THREADS) == "isolate")
        found = {"resources:VCPU": str(shared), "resources:PCPU": str(dedicated + isolated)}
    threads = _THREADS.get(specs.get(_THREAD_POLICY, ""))
    if threads is not None:
        found["trait:HW_CPU_HYPERTHREADING"] = threads
    if specs.get(_MEMORY_ENCRYPTION, "").lower() in {"1", "true", "yes", "on"}:
        found["resources:MEM_ENCRYPTION_CONTEXT"] = "1"
    version = specs.get(_TPM_VERSION)
    if version:
        found[f"trait:COMPUTE_SECURITY_TPM_{version.replace('.', '_')}"] = "required"
    return found


def _dedicated(vcpus: int, specs: Mapping[str, str]) -> int:
    """Return how many processors get a physical one of their own."""
    policy = specs.get(_CPU_POLICY)
    if policy == "dedicated":
        return vcpus
    if policy == "mixed":
        return len(_members(specs.get(_DEDICATED_MASK, ""), vcpus))
    return 0


def _members(mask: str, vcpus: int) -> set[int]:
    """Return the processors of a mask such as `0-3,^2`; only exclusions mean all the others."""
    parts = [part.strip() for part in mask.split(",") if part.strip()]
    without = {cpu for part in parts if part.startswith("^") for cpu in _range(part[1:], vcpus)}
    named = [part for part in parts if not part.startswith("^")]
    found = {cpu for part in named for cpu in _range(part, vcpus)}
    return (found if named else set(range(vcpus))) - without


def _range(text: str, vcpus: int) -> range:
    first, _, last = text.partition("-")
    try:
        found = range(int(first), int(last or first) + 1)
    except ValueError as error:
        raise FlavorError(f"{_DEDICATED_MASK}: {text!r} is no processor") from error
    if found and found[-1] >= vcpus:
        raise FlavorError(f"{_DEDICATED_MASK}: there is no processor {found[-1]}")
    return found
