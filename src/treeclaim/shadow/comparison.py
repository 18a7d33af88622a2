# SPDX-License-Identifier: Apache-2.0
"""How two answers to one request differ."""

import urllib.parse
from collections import Counter
from dataclasses import dataclass
from typing import Any

from treeclaim.shadow import messages
from treeclaim.shadow.messages import Request, Response

MOST_SHOWN = 3
"""Candidates of a difference that are shown."""

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


@dataclass(frozen=True, slots=True)
class Difference:
    """One point in which two answers to a request differ."""

    what: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        """Write it in a line."""
        return f"{self.what}: ours {self.ours!r}, theirs {self.theirs!r}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and both answers to it."""

    request: Request
    ours: Response
    theirs: Response

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the query, decoded, in their order."""
        return urllib.parse.parse_qsl(self.request.query, keep_blank_values=True)

    @property
    def limited(self) -> bool:
        """Tell whether the request had a limit."""
        return any(name == "limit" for name, _ in self.parameters)

    @property
    def signature(self) -> tuple[str, ...]:
        """Return what alike differences have in common."""
        parts = self.request.route.strip("/").split("/")
        route = "/".join(part for number, part in enumerate(parts) if number % 2 == 0)
        kinds = sorted({difference.what.split(" ")[0] for difference in differences(self)})
        outcome = f"{self.ours.status}/{self.theirs.status}"
        return (self.request.method, route, outcome, *kinds)


def differences(exchange: Exchange) -> list[Difference]:
    """Return every point in which the two answers differ; none when they say the same."""
    ours, theirs = exchange.ours, exchange.theirs
    if ours.status != theirs.status:
        summary = (messages.detail(answer)[:300] for answer in (ours, theirs))
        return [Difference("status", (ours.status, next(summary)), (theirs.status, next(summary)))]
    differing = _members("header", messages.headers(ours), messages.headers(theirs))
    differing += _members("error", messages.error(ours), messages.error(theirs))
    if messages.error(ours):
        return differing + _phrases(ours, theirs)
    differing += _members("body", messages.body(ours), messages.body(theirs))
    if isinstance(ours.document, dict) and "allocation_requests" in ours.document:
        differing += _candidates(exchange)
    return differing


def _members(what: str, ours: Any, theirs: Any) -> list[Difference]:
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return [] if ours == theirs else [Difference(what, ours, theirs)]
    return [
        Difference(f"{what} {name}", ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def _phrases(ours: Response, theirs: Response) -> list[Difference]:
    """Two refusals, each with phrases of the contract that the other does not have."""
    said = [messages.detail(answer) for answer in (ours, theirs)]
    phrases = [{phrase for phrase in PHRASES if phrase in text} for text in said]
    alike = phrases[0] & phrases[1] or phrases[0] == phrases[1]
    return [] if alike else [Difference("phrase", said[0], said[1])]


def _candidates(exchange: Exchange) -> list[Difference]:
    documents = (exchange.ours.document, exchange.theirs.document)
    ours, theirs = (messages.candidates(document) for document in documents)
    if exchange.limited:
        counts = (ours.total(), theirs.total())
        return [] if counts[0] == counts[1] else [Difference("candidates counted", *counts)]
    differing = []
    if ours != theirs:
        differing.append(
            Difference(
                "candidates", *(_some(lacking) for lacking in (ours - theirs, theirs - ours))
            )
        )
    summaries = (messages.summaries(document) for document in documents)
    return differing + _members("summary", *summaries)


def _some(candidates: Counter[str]) -> str:
    shown = "; ".join(list(candidates)[:MOST_SHOWN])
    return f"{candidates.total()} that the other lacks: {shown}"


def outside(limited: Response, unlimited: Response) -> list[Difference]:
    """Return candidates of a limited answer that the unlimited one lacks, or with other summaries."""
    few, many = limited.document, unlimited.document
    surplus = messages.candidates(few) - messages.candidates(many)
    differing = (
        [Difference("candidates beyond the unlimited", _some(surplus), None)] if surplus else []
    )
    for uuid, summary in few["provider_summaries"].items():
        if many["provider_summaries"].get(uuid) != summary:
            differing.append(Difference("summary of the limited", summary, None))
    return differing
