# SPDX-License-Identifier: Apache-2.0
"""Translates flavors to the queries that Nova sends for servers.

The rules are in Nova's documentation of flavors and extra specs; contract page 97, section 4, has the rules of all
flavors.
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
"""The parameter by which Nova excludes disabled hosts."""

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
"""Extra specs that Nova translates to requests of Placement."""

_JUDGED_BY_NOVA = (
    "accel:",
    "aggregate_instance_extra_specs:",
    "capabilities:",
    "hw:",
    "pci_passthrough:",
)
"""Prefixes of extra specs that Nova's filters check after Placement's answer."""

_THREADS = {"isolate": "forbidden", "prefer": None, "require": "required"}
"""Requirement of the trait HW_CPU_HYPERTHREADING by thread policy."""

_KINDS = {each.name: each.flavor_items for each in QUERY_PARAMETERS if each.flavor_items}
_WORDS = tuple(dict.fromkeys((*_KINDS.values(), *BY_NAME, *SIZE_MEMBERS)))
_SUFFIX = re.compile("[0-9_]")
_FORM = {"resources": "CLASS=AMOUNT", "trait": "TRAIT=required or forbidden"}

_LONGEST = 64
"""Characters of a word that are compared; all known words are shorter."""

_LIKENESS = 0.8
"""Least similarity of a misspelt and a known word, as difflib measures it."""


@dataclass(frozen=True, slots=True)
class ServerFlavor:
    """The query that Nova sends for a flavor, and the extra specs that Nova checks itself."""

    parameters: tuple[tuple[str, str], ...]
    omitted_specs: tuple[str, ...]


def translate_flavor(flavor: Flavor) -> ServerFlavor:
    """Return the query of Nova for a server that boots from the flavor's disk.

    Raises:
        FlavorError: if an extra spec of Placement is invalid or misspelt.
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
    """Refuse a misspelt extra spec of Placement; ignore other unknown extra specs."""
    begin, colon, _ = name.partition(":")
    word, suffix = split_name(find_parameter_name(name))
    if suffix and not _SUFFIX.match(suffix):
        word = name
    if not colon and word in _KINDS:
        kind = _KINDS[word]
        raise FlavorError(f"extra spec {name!r}: a flavor has {kind}{suffix}:{_FORM[kind]}")
    if name in TRANSLATED or word in BY_NAME or (colon and split_name(begin)[0] in _FORM):
        return
    nearest_name = _find_nearest(name, TRANSLATED)
    for part in _list_prefixes(begin):
        nearest_name = nearest_name or _find_nearest(
            part, (*_FORM, *sorted(NUMBERED)) if colon else _WORDS
        )
    if nearest_name is not None and nearest_name not in _list_prefixes(begin):
        raise FlavorError(f"unknown extra spec {name!r}; did you mean {nearest_name!r}?")


def _list_prefixes(name: str) -> Iterator[str]:
    """Yield the name, then its prefixes without possible suffixes, the longest first."""
    yield name
    yield from (name[: match.start()] for match in reversed(list(re.finditer("[0-9_]", name))))


def _translate(vcpus: int, specs: Mapping[str, str]) -> dict[str, str]:
    """Return Placement's equivalents of some extra specs of Nova."""
    translated_specs: dict[str, str] = {}
    emulator = _read_choice(specs, _EMULATOR_THREADS, _EMULATOR_POLICIES)
    dedicated_cpus = _count_dedicated(vcpus, specs)
    if dedicated_cpus:
        shared_cpus = vcpus - dedicated_cpus
        isolated_cpus = int(emulator == "isolate")
        translated_specs = {
            "resources:VCPU": str(shared_cpus),
            "resources:PCPU": str(dedicated_cpus + isolated_cpus),
        }
    threads = _THREADS.get(_read_choice(specs, _THREAD_POLICY, _THREADS))
    if threads is not None:
        translated_specs["trait:HW_CPU_HYPERTHREADING"] = threads
    if specs.get(_MEMORY_ENCRYPTION, "").lower() in {"1", "true", "yes", "on"}:
        translated_specs["resources:MEM_ENCRYPTION_CONTEXT"] = "1"
    version = specs.get(_TPM_VERSION)
    if version:
        translated_specs[f"trait:COMPUTE_SECURITY_TPM_{version.replace('.', '_')}"] = "required"
    return translated_specs


def _read_choice(specs: Mapping[str, str], name: str, choices: Iterable[str]) -> str:
    word = specs.get(name, "")
    if word and word not in choices:
        raise FlavorError(f"extra spec {name!r}: {word[:40]!r} is none of {', '.join(choices)}")
    return word


def _count_dedicated(vcpus: int, specs: Mapping[str, str]) -> int:
    policy = _read_choice(specs, _CPU_POLICY, _CPU_POLICIES)
    if policy == "dedicated":
        return vcpus
    if policy == "mixed":
        return len(_parse_mask(specs.get(_DEDICATED_MASK, ""), vcpus))
    return 0


def _parse_mask(mask: str, vcpus: int) -> set[int]:
    """Return the processors of a mask such as `0-3,^2`; a mask of exclusions alone selects all others."""
    parts = [part.strip() for part in mask.split(",") if part.strip()]
    excluded_cpus = {
        cpu for part in parts if part.startswith("^") for cpu in _parse_range(part[1:], vcpus)
    }
    included_parts = [part for part in parts if not part.startswith("^")]
    cpus = {cpu for part in included_parts for cpu in _parse_range(part, vcpus)}
    return (cpus if included_parts else set(range(vcpus))) - excluded_cpus


def _parse_range(text: str, vcpus: int) -> range:
    match = re.fullmatch("([0-9]{1,6})(?:-([0-9]{1,6}))?", text)
    if match is None:
        raise FlavorError(f"{_DEDICATED_MASK}: {text[:40]!r} is not a processor")
    last_cpu = int(match[2] or match[1])
    if last_cpu >= vcpus:
        raise FlavorError(f"{_DEDICATED_MASK}: there is not a processor {last_cpu}")
    return range(int(match[1]), last_cpu + 1)


def _find_nearest(word: str, known_words: Iterable[str]) -> str | None:
    matches = get_close_matches(word.lower()[:_LONGEST], tuple(known_words), 1, _LIKENESS)
    return matches[0] if matches else None
