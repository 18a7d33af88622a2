# SPDX-License-Identifier: Apache-2.0
"""Flavors of Nova as queries: the request that Nova sends for a server with a flavor.

The rules are those of Nova's documentation of flavors and extra specs; contract page 97,
section 4, has those that all flavors share.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from treeclaim.model.flavors import (
    NUMBERED,
    SIZE_MEMBERS,
    Flavor,
    FlavorError,
    find_parameter_name,
    make_query_parameters,
)
from treeclaim.model.query.parameters import BY_NAME, QUERY_PARAMETERS, split_name

ENABLED_HOSTS = ("root_required", "!COMPUTE_STATUS_DISABLED")
"""Nova never requests hosts that an operator has disabled."""

_CPU_POLICY = "hw:cpu_policy"
_CPU_POLICIES = ("dedicated", "mixed", "shared")
_DEDICATED_MASK = "hw:cpu_dedicated_mask"
_EMULATOR_THREADS = "hw:emulator_threads_policy"
_EMULATOR_POLICIES = ("isolate", "share")
_THREAD_POLICY = "hw:cpu_thread_policy"
_MEMORY_ENCRYPTION = "hw:mem_encryption"
_TPM_VERSION = "hw:tpm_version"
TRANSLATED = (
    _CPU_POLICY,
    _DEDICATED_MASK,
    _EMULATOR_THREADS,
    _THREAD_POLICY,
    _MEMORY_ENCRYPTION,
    _TPM_VERSION,
)
"""Extra specs of Nova that have a meaning for Placement."""

_JUDGED_BY_NOVA = (
    "accel:",
    "aggregate_instance_extra_specs:",
    "capabilities:",
    "hw:",
    "pci_passthrough:",
)
"""Beginnings of extra specs by which Nova's own filters choose hosts, after Placement has."""

_THREADS = {"isolate": "forbidden", "prefer": None, "require": "required"}
"""Requirement of a thread policy on hosts with hyperthreading."""

_KINDS = {each.name: each.flavor_items for each in QUERY_PARAMETERS if each.flavor_items}
_WORDS = tuple(dict.fromkeys((*_KINDS.values(), *BY_NAME, *SIZE_MEMBERS)))
_SUFFIX = re.compile("[0-9_]")
_FORM = {"resources": "CLASS=AMOUNT", "trait": "TRAIT=required or forbidden"}

_LONGEST = 64
"""Letters of a word that is compared; no known one is as long."""

_LIKENESS = 0.8
"""Least likeness of a misspelt word and the known one, as difflib measures it."""


@dataclass(frozen=True, slots=True)
class ServerFlavor:
    """The request that Nova makes for a flavor.

    Attributes:
        parameters: Parameters of the query for candidates.
        omitted_specs: Extra specs that Nova checks itself.
    """

    parameters: tuple[tuple[str, str], ...]
    omitted_specs: tuple[str, ...]


def translate_flavor(flavor: Flavor) -> ServerFlavor:
    """Return the request of Nova for a server that boots from the flavor's own disk.

    Raises:
        FlavorError: if an extra spec cannot be read, or misspells one that Placement reads.
    """
    specs = flavor.extra_specs
    for name in specs:
        _refuse_misspelt(name)
    translated = replace(flavor, extra_specs={**_translate(flavor.vcpus, specs), **specs})
    parameters = make_query_parameters(translated)
    if ENABLED_HOSTS[0] not in dict(parameters):
        parameters = (*parameters, ENABLED_HOSTS)
    omitted_specs = (
        name
        for name in sorted(specs)
        if name.startswith(_JUDGED_BY_NOVA) and name not in TRANSLATED
    )
    return ServerFlavor(parameters, tuple(omitted_specs))


def _refuse_misspelt(name: str) -> None:
    """Refuse a misspelling of an extra spec that Placement reads; other unknown specs are ignored."""
    begin, colon, _ = name.partition(":")
    word, suffix = split_name(find_parameter_name(name))
    if suffix and not _SUFFIX.match(suffix):
        word = name
    if not colon and word in _KINDS:
        kind = _KINDS[word]
        raise FlavorError(f"extra spec {name!r}: a flavor has {kind}{suffix}:{_FORM[kind]}")
    if name in TRANSLATED or word in BY_NAME or (colon and split_name(begin)[0] in _FORM):
        return
    near = _nearest(name, TRANSLATED)
    for part in _beginnings(begin):
        near = near or _nearest(part, (*_FORM, *sorted(NUMBERED)) if colon else _WORDS)
    if near is not None and near not in _beginnings(begin):
        raise FlavorError(f"unknown extra spec {name!r}; did you mean {near!r}?")


def _beginnings(name: str) -> Iterator[str]:
    """Yield the name, and its beginnings without possible suffixes, the longest first."""
    yield name
    yield from (name[: cut.start()] for cut in reversed(list(re.finditer("[0-9_]", name))))


def _translate(vcpus: int, specs: Mapping[str, str]) -> dict[str, str]:
    """Return Placement's equivalents of some extra specs of Nova."""
    translated: dict[str, str] = {}
    emulator = _choice(specs, _EMULATOR_THREADS, _EMULATOR_POLICIES)
    dedicated = _dedicated_processors(vcpus, specs)
    if dedicated:
        shared = vcpus - dedicated
        isolated = int(emulator == "isolate")
        translated = {"resources:VCPU": str(shared), "resources:PCPU": str(dedicated + isolated)}
    threads = _THREADS.get(_choice(specs, _THREAD_POLICY, _THREADS))
    if threads is not None:
        translated["trait:HW_CPU_HYPERTHREADING"] = threads
    if specs.get(_MEMORY_ENCRYPTION, "").lower() in {"1", "true", "yes", "on"}:
        translated["resources:MEM_ENCRYPTION_CONTEXT"] = "1"
    version = specs.get(_TPM_VERSION)
    if version:
        translated[f"trait:COMPUTE_SECURITY_TPM_{version.replace('.', '_')}"] = "required"
    return translated


def _choice(specs: Mapping[str, str], name: str, choices: Iterable[str]) -> str:
    """Return the word of an extra spec, "" without one."""
    word = specs.get(name, "")
    if word and word not in choices:
        raise FlavorError(f"extra spec {name!r}: {word[:40]!r} is none of {', '.join(choices)}")
    return word


def _dedicated_processors(vcpus: int, specs: Mapping[str, str]) -> int:
    """Return how many processors get a physical one of their own."""
    policy = _choice(specs, _CPU_POLICY, _CPU_POLICIES)
    if policy == "dedicated":
        return vcpus
    if policy == "mixed":
        return len(_members(specs.get(_DEDICATED_MASK, ""), vcpus))
    return 0


def _members(mask: str, vcpus: int) -> set[int]:
    """Return the processors of a mask such as `0-3,^2`; only exclusions mean all the others."""
    parts = [part.strip() for part in mask.split(",") if part.strip()]
    without = {cpu for part in parts if part.startswith("^") for cpu in _range(part[1:], vcpus)}
    included = [part for part in parts if not part.startswith("^")]
    cpus = {cpu for part in included for cpu in _range(part, vcpus)}
    return (cpus if included else set(range(vcpus))) - without


def _range(text: str, vcpus: int) -> range:
    match = re.fullmatch("([0-9]{1,6})(?:-([0-9]{1,6}))?", text)
    if match is None:
        raise FlavorError(f"{_DEDICATED_MASK}: {text[:40]!r} is not a processor")
    last = int(match[2] or match[1])
    if last >= vcpus:
        raise FlavorError(f"{_DEDICATED_MASK}: there is not a processor {last}")
    return range(int(match[1]), last + 1)


def _nearest(word: str, known_words: Iterable[str]) -> str | None:
    """Return the known word that a word misspells; None without one."""
    near = get_close_matches(word.lower()[:_LONGEST], tuple(known_words), 1, _LIKENESS)
    return near[0] if near else None
