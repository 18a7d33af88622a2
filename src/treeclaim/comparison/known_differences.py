# SPDX-License-Identifier: Apache-2.0
"""Intended differences between an existing deployment and the contract.

"Theirs" is OpenStack Placement. The contract names most of these itself
(page 90, section 7, notes N1 to N8); the others are answers that break a rule
of the contract. Every other difference is a defect of ours.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from treeclaim.comparison import messages
from treeclaim.comparison.comparison import Difference, Exchange, differences

OK, BAD_REQUEST, CONFLICT, SERVER_ERROR = 200, 400, 409, 500
CANDIDATES = "/allocation_candidates"
LARGEST_INTEGER = 2**63 - 1
GROUP_KEY = re.compile(r"^(resources|required|member_of|in_tree)(.*)$")
UNKNOWN_NAME = re.compile(r"No such (?:resource class|trait\(s\)): ([A-Z0-9_]+(?:, [A-Z0-9_]+)*)")
PROVIDER = re.compile(r"^/resource_providers/[^/]+$")


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """An intended difference.

    Attributes:
        number: The number of its row in `docs/differences.md`, or of the first of several.
        name: The note of the contract, or a few words.
        reason: Where the contract says so.
        applies: Recognises the exchanges that show it.
    """

    number: int
    name: str
    reason: str
    applies: Callable[[Exchange, list[Difference]], bool]


def recognised(exchange: Exchange) -> KnownDifference | None:
    """Return the known difference that explains how the answers differ; None when nothing does."""
    differing = differences(exchange)
    return next(
        (difference for difference in KNOWN if difference.applies(exchange, differing)), None
    )


def _values(exchange: Exchange, name: str) -> list[str]:
    return [value for key, value in exchange.parameters if key == name]


def _groups(exchange: Exchange) -> dict[str, dict[str, list[str]]]:
    """The values of each group's parameters, by suffix and name."""
    groups: dict[str, dict[str, list[str]]] = {}
    for key, value in exchange.parameters:
        matched = GROUP_KEY.match(key)
        if matched:
            groups.setdefault(matched[2], {}).setdefault(matched[1], []).append(value)
    return groups


def _classes(group: dict[str, list[str]]) -> set[str]:
    values = group.get("resources", [])
    return {part.partition(":")[0] for part in values[-1].split(",")} if values else set()


def _both_found(exchange: Exchange) -> bool:
    return (
        exchange.request.route == CANDIDATES
        and exchange.ours.status == exchange.theirs.status == OK
    )


def _theirs_lack_candidates(exchange: Exchange) -> bool:
    """Theirs are some of ours, and everything of theirs is right."""
    documents = (exchange.ours.document, exchange.theirs.document)
    ours, theirs = (messages.candidates(document) for document in documents)
    if exchange.limited:
        return theirs.total() < ours.total()
    return theirs < ours


def anchor_lost(exchange: Exchange, _: list[Difference]) -> bool:
    """Theirs lack candidates where a group without suffix has others beside it."""
    groups = _groups(exchange)
    return (
        _both_found(exchange)
        and len(groups) > 1
        and "resources" in groups.get("", {})
        and _theirs_lack_candidates(exchange)
    )


def amounts_inflated(exchange: Exchange, _: list[Difference]) -> bool:
    """Groups ask for a class that the group without suffix asks for too."""
    groups = _groups(exchange)
    unsuffixed = _classes(groups.pop("", {}))
    shared = any(unsuffixed & _classes(group) for group in groups.values())
    policy = _values(exchange, "group_policy")
    return _both_found(exchange) and shared and (not policy or policy[0] == "isolate")


def resourceless_group(exchange: Exchange, _: list[Difference]) -> bool:
    """A group asks for no resources, and requires nothing or a tree."""
    for group in _groups(exchange).values():
        if "resources" in group:
            continue
        required = ",".join(group.get("required", []))
        positive = any(not name.startswith("!") for name in required.split(",") if name)
        members = any(not value.startswith("!") for value in group.get("member_of", []))
        if "in_tree" in group or not (positive or members):
            return _both_found(exchange)
    return False


def sharing_child(exchange: Exchange, _: list[Difference]) -> bool:
    """Theirs fail with 500 on resources without suffix; ours answer."""
    has_unsuffixed_group = exchange.request.route == CANDIDATES and "resources" in _groups(
        exchange
    ).get("", {})
    return (
        has_unsuffixed_group
        and exchange.ours.status == OK
        and exchange.theirs.status == SERVER_ERROR
        and bool(exchange.ours.document["allocation_requests"])
    )


def earlier_repetition(exchange: Exchange, _: list[Difference]) -> bool:
    """A parameter that may be there once is there twice; ours refuse."""
    repeated = any(len(_values(exchange, name)) > 1 for name in ("limit", "group_policy"))
    return (
        exchange.request.route == CANDIDATES
        and repeated
        and exchange.ours.status == BAD_REQUEST
        and exchange.theirs.status in {OK, BAD_REQUEST, SERVER_ERROR}
    )


def amount_beyond_storage(exchange: Exchange, _: list[Difference]) -> bool:
    """Theirs fail with 500 on an amount that their database cannot hold."""
    amounts = [
        int(digits)
        for digits in re.findall(r":(\d+)", " ".join(v for _, v in exchange.parameters))
    ]
    return exchange.theirs.status == SERVER_ERROR and any(n > LARGEST_INTEGER for n in amounts)


def unknown_name_unnoticed(exchange: Exchange, _: list[Difference]) -> bool:
    """Ours refuse a name that does not exist; theirs find nothing with it."""
    unknown = ("No such trait", "No such resource class")
    return (
        exchange.request.route in {CANDIDATES, "/resource_providers"}
        and exchange.ours.status == BAD_REQUEST
        and exchange.theirs.status == OK
        and any(phrase in messages.detail(exchange.ours) for phrase in unknown)
        and not any(exchange.theirs.document.values())
    )


def unknown_name_order(exchange: Exchange, _: list[Difference]) -> bool:
    """Tell whether each side names another one of several unknown names of a request."""
    path = exchange.request.path
    named = [
        match
        for answer in (exchange.ours, exchange.theirs)
        if (match := UNKNOWN_NAME.search(messages.detail(answer))) is not None
    ]
    return (
        exchange.request.route == CANDIDATES
        and exchange.ours.status == exchange.theirs.status == BAD_REQUEST
        and len(named) == 2  # noqa: PLR2004 - one of each side
        and all(name in path for match in named for name in match[1].split(", "))
    )


def parent_without_time(exchange: Exchange, differing: list[Difference]) -> bool:
    """Only the time of the last change differs, after a change of a provider."""
    return (
        exchange.request.method == "PUT"
        and PROVIDER.match(exchange.request.route) is not None
        and [difference.what for difference in differing] == ["header last-modified"]
        and "last-modified" in exchange.ours.headers
    )


def claim_refused_otherwise(exchange: Exchange, _: list[Difference]) -> bool:
    """Both refuse a claim, and name different ones of its amounts."""
    said = (messages.detail(exchange.ours), messages.detail(exchange.theirs))
    return exchange.ours.status == exchange.theirs.status == CONFLICT and all(
        "Unable to allocate inventory" in text for text in said
    )


def no_inventories_without_time(exchange: Exchange, differing: list[Difference]) -> bool:
    """Only the time of the last change differs, where inventories lack."""
    return (
        exchange.request.route.endswith("/inventories")
        and [difference.what for difference in differing] == ["header last-modified"]
        and exchange.ours.document.get("inventories") == {}
    )


KNOWN = (
    KnownDifference(
        1,
        "N1",
        "page 90, section 7: an unsuffixed group served by sharing providers that are reachable"
        " from several anchors keeps one arbitrary anchor when suffixed groups join it",
        anchor_lost,
    ),
    KnownDifference(
        2,
        "N2",
        "page 90, section 7: a class in the unsuffixed and in a suffixed group inflates amounts"
        " across candidates, or loses candidates",
        amounts_inflated,
    ),
    KnownDifference(
        3,
        "N3",
        "page 90, section 7: resourceless groups with only forbidden traits, only forbidden"
        " aggregates or only in_tree have no candidates, and in_tree does nothing in others",
        resourceless_group,
    ),
    KnownDifference(
        5,
        "N4",
        "page 90, section 7: a non-root sharing provider used from a foreign anchor is a 500",
        sharing_child,
    ),
    KnownDifference(
        6,
        "N5",
        "page 90, section 7: of a repeated limit or group_policy only the last is validated",
        earlier_repetition,
    ),
    KnownDifference(
        8,
        "N6",
        "page 90, section 7: an amount beyond the integers of the database is a 500",
        amount_beyond_storage,
    ),
    KnownDifference(
        10,
        "N8",
        "page 90, section 2 step G and section 7; page 20, section 2.6: once the answer is known"
        " to be empty, unknown names go unreported",
        unknown_name_unnoticed,
    ),
    KnownDifference(
        19,
        "one unknown name of several",
        "page 90, section 2: within one step the order of the parameters is that of the query",
        unknown_name_order,
    ),
    KnownDifference(
        16,
        "no time of an unmoved provider",
        "page 00, section 8: PUT of a provider always sends Last-Modified; theirs does not when"
        " the provider has a parent and keeps it",
        parent_without_time,
    ),
    KnownDifference(
        13,
        "another reason against a claim",
        "page 70, section 3.3: a missing inventory comes before units, units before capacity;"
        " theirs tells the first reason that it meets, record by record",
        claim_refused_otherwise,
    ),
    KnownDifference(
        18,
        "no time of no inventories",
        "page 00, section 8: without inventories Last-Modified may be omitted",
        no_inventories_without_time,
    ),
)
