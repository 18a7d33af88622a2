# SPDX-License-Identifier: Apache-2.0
"""Differences of answers to one request, with the phrases of refusals and the rules of limited answers."""

import re

from treeclaim.comparison import comparison, known_differences
from treeclaim.comparison.comparison import (
    Difference,
    Response,
    ResponsePair,
    describe_entries,
)
from treeclaim.comparison.known_differences import KnownDifference

PHRASES = (
    "The resource could not be found",
    "The method ",
    "Only application/json is provided",
    "The media type ",
    "Malformed JSON",
    "Additional properties are not allowed",
    "does not match any of the regexes",
    "is a required property",
    "Failed validating",
    "is not one of ['none', 'isolate']",
    "No resource provider with uuid",
    "found for delete",
    "parent provider UUID does not exist",
    "parent provider UUID cannot be same as UUID",
    "creating loop in the provider tree is not allowed.",
    "un-parenting a provider is not currently allowed",
    "re-parenting a provider is not currently allowed",
    "Conflicting resource provider",
    "It has child resource providers",
    "Resource provider has allocations.",
    "The reserved value is greater than",
    "greater than or equal to total",
    "No inventory of class",
    "No inventory record with resource class",
    "Unable to delete inventory of class",
    "Unknown resource class in inventory",
    "resource provider generation conflict",
    "in use",
    "Resource provider's generation already changed",
    "No such trait",
    "No such resource class",
    "The trait is invalid",
    "Cannot delete standard trait",
    "is in use by a resource provider",
    "Cannot update standard resource class",
    "Cannot delete standard resource class",
    "Class is in use in inventory",
    "Resource class already exists",
    "Conflicting resource class already exists",
    "consumer generation conflict - expected",
    "that does not exist",
    "The requested amount would violate inventory constraints",
    "The requested amount would exceed the capacity",
    "No allocations for consumer",
    "in inventories not found",
    "Badly formed resources parameter",
    "expected positive integer amount",
    "requires amount >= 1",
    "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC.",
    "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC.",
    "Expected 'required' parameter value of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC.",
    "only supported since microversion 1.39.",
    "does not support forbidden traits",
    "Multiple member_of",
    "Multiple values for 'member_of'",
    "to contain valid UUID(s).",
    "parameters are not supported in the specified microversion",
    "Expected 'in_tree' parameter to be a format of uuid",
    "All traits parameters must be associated with resources.",
    "All member_of parameters must be associated with resources",
    "All request groups must specify resources.",
    "At least one request group",
    "There must be at least one resources",
    "Resourceless suffixed group request should be specified",
    "Real suffixes should be specified",
    "Empty string (unsuffixed group)",
    "may be specified only once.",
    "Conflicting required and forbidden traits found in root_required",
    "Conflicting required and forbidden traits found in the following traits keys",
    'The "group_policy" parameter is required',
)
"""Phrases that say why a request is refused; those that merely open many refusals are left out."""

PROVIDER = re.compile(r"^/resource_providers/[^/]+$")
CONFLICT = 409


def keeps_time_of_parents(exchange: ResponsePair) -> bool:
    """Return whether only the time of the last change differs, after a change of a provider."""
    return (
        exchange.request.method == "PUT"
        and PROVIDER.match(exchange.request.route) is not None
        and [difference.what for difference in comparison.differences(exchange)]
        == ["header last-modified"]
        and "last-modified" in exchange.ours.headers
    )


def refuses_claims_otherwise(exchange: ResponsePair) -> bool:
    """Return whether both sides refuse a claim, and name different amounts of it."""
    return all(
        answer.status == CONFLICT and "Unable to allocate inventory" in answer.detail
        for answer in (exchange.ours, exchange.theirs)
    )


KNOWN = (
    *known_differences.KNOWN,
    KnownDifference(
        16,
        "no time of an unmoved provider",
        "page 00, section 8: PUT of a provider always sends Last-Modified; theirs does not when the provider has"
        " a parent and keeps it",
        keeps_time_of_parents,
    ),
    KnownDifference(
        13,
        "another reason against a claim",
        "page 70, section 3.3: a missing inventory comes before units, units before capacity; theirs reports the"
        " first reason that it meets, record by record",
        refuses_claims_otherwise,
    ),
)
"""Known differences of reads and writes."""


def recognised(exchange: ResponsePair) -> KnownDifference | None:
    """Return the known difference that explains how the answers differ; None without one."""
    return next((known for known in KNOWN if known.applies(exchange)), None)


def differences(exchange: ResponsePair) -> list[Difference]:
    """Return every point in which the two answers differ, phrases of refusals included."""
    differing = comparison.differences(exchange)
    ours, theirs = exchange.ours, exchange.theirs
    if ours.status == theirs.status and ours.error:
        differing += _phrases(ours, theirs)
    return differing


def _phrases(ours: Response, theirs: Response) -> list[Difference]:
    """Two refusals, each with phrases of the contract that the other does not have."""
    said = [answer.detail for answer in (ours, theirs)]
    phrases = [{phrase for phrase in PHRASES if phrase in text} for text in said]
    alike = phrases[0] & phrases[1] or phrases[0] == phrases[1]
    return [] if alike else [Difference("phrase", said[0], said[1])]


def outside(limited: Response, unlimited: Response) -> list[Difference]:
    """Return candidates of a limited answer that the unlimited one lacks, or with other summaries."""
    few, many = limited.document, unlimited.document
    surplus = limited.candidates - unlimited.candidates
    differing = (
        [Difference("candidates beyond the unlimited", describe_entries(surplus), None)]
        if surplus
        else []
    )
    for uuid, summary in few["provider_summaries"].items():
        if many["provider_summaries"].get(uuid) != summary:
            differing.append(Difference("summary of the limited", summary, None))
    return differing
