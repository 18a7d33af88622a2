# SPDX-License-Identifier: Apache-2.0
"""Intended differences between reads of Treeclaim ("ours") and of OpenStack Placement ("theirs").

They are rows of docs/differences.md. Every other difference is a defect of Treeclaim.
"""

import re
from collections.abc import Callable, Mapping

from treeclaim.comparison.comparison import ResponsePair, describe_differences

_OK, _BAD_REQUEST, _SERVER_ERROR = 200, 400, 500
_CANDIDATES = "/allocation_candidates"
_LARGEST_INTEGER = 2**63 - 1
_GROUP_KEY = re.compile(r"^(resources|required|member_of|in_tree)(.*)$")
_UNKNOWN_NAME = re.compile(r"No such (?:resource class|trait\(s\)): ([A-Z0-9_]+(?:, [A-Z0-9_]+)*)")


def _parse_groups(exchange: ResponsePair) -> dict[str, dict[str, list[str]]]:
    """Return the parameters of request groups by suffix and name; empty for other reads."""
    groups: dict[str, dict[str, list[str]]] = {}
    if exchange.request.route == _CANDIDATES:
        for key, value in exchange.request.parameters:
            if match := _GROUP_KEY.match(key):
                groups.setdefault(match[2], {}).setdefault(match[1], []).append(value)
    return groups


def _parse_classes(group: dict[str, list[str]]) -> set[str]:
    values = group.get("resources", [""])
    return {part.partition(":")[0] for part in values[-1].split(",") if part}


def _loses_anchors(exchange: ResponsePair) -> bool:
    groups = _parse_groups(exchange)
    if len(groups) < 2 or "resources" not in groups.get("", {}):  # noqa: PLR2004
        return False
    ours, theirs = exchange.ours.candidates, exchange.theirs.candidates
    return theirs.total() < ours.total() if exchange.request.has_limit else theirs < ours


def _inflates_amounts(exchange: ResponsePair) -> bool:
    groups = _parse_groups(exchange)
    unsuffixed_classes = _parse_classes(groups.pop("", {}))
    is_shared = any(unsuffixed_classes & _parse_classes(group) for group in groups.values())
    policy = dict(reversed(exchange.request.parameters)).get("group_policy", "isolate")
    return is_shared and policy == "isolate"


def _ignores_resourceless_groups(exchange: ResponsePair) -> bool:
    for group in _parse_groups(exchange).values():
        names = [name for value in group.get("required", []) for name in value.split(",")]
        requirements = [*names, *group.get("member_of", [])]
        is_positive = any(text and not text.startswith("!") for text in requirements)
        if "resources" not in group and ("in_tree" in group or not is_positive):
            return True
    return False


def _fails_with_sharing_children(exchange: ResponsePair) -> bool:
    has_unsuffixed = "resources" in _parse_groups(exchange).get("", {})
    return has_unsuffixed and bool(exchange.ours.document["allocation_requests"])


def _accepts_repetitions(exchange: ResponsePair) -> bool:
    names = [name for name, _ in exchange.request.parameters]
    is_repeated = any(names.count(name) > 1 for name in ("limit", "group_policy"))
    return exchange.request.route == _CANDIDATES and is_repeated


def _cannot_store_amounts(exchange: ResponsePair) -> bool:
    values = " ".join(value for _, value in exchange.request.parameters)
    return any(int(amount) > _LARGEST_INTEGER for amount in re.findall(r":(\d+)", values))


def _ignores_unknown_names(exchange: ResponsePair) -> bool:
    return (
        exchange.request.route in {_CANDIDATES, "/resource_providers"}
        and re.search("No such (trait|resource class)", exchange.ours.detail) is not None
        and not any(exchange.theirs.document.values())
    )


def _reports_other_unknown_names(exchange: ResponsePair) -> bool:
    matches = [_UNKNOWN_NAME.search(side.detail) for side in (exchange.ours, exchange.theirs)]
    return exchange.request.route == _CANDIDATES and all(
        match is not None and all(name in exchange.request.path for name in match[1].split(", "))
        for match in matches
    )


def _omits_time_of_no_inventories(exchange: ResponsePair) -> bool:
    return (
        exchange.request.route.endswith("/inventories")
        and describe_differences(exchange).keys() == {"header last-modified"}
        and exchange.ours.document.get("inventories") == {}
    )


KNOWN_DIFFERENCES: Mapping[int, tuple[int | None, int | None, Callable[[ResponsePair], bool]]] = {
    1: (_OK, _OK, _loses_anchors),
    2: (_OK, _OK, _inflates_amounts),
    3: (_OK, _OK, _ignores_resourceless_groups),
    5: (_OK, _SERVER_ERROR, _fails_with_sharing_children),
    6: (_BAD_REQUEST, None, _accepts_repetitions),
    8: (None, _SERVER_ERROR, _cannot_store_amounts),
    10: (_BAD_REQUEST, _OK, _ignores_unknown_names),
    19: (_BAD_REQUEST, _BAD_REQUEST, _reports_other_unknown_names),
    18: (_OK, _OK, _omits_time_of_no_inventories),
}
"""Known differences by the number of their first row: our status, their status (None for any), and a test of a pair."""


def find_known_difference(exchange: ResponsePair) -> int | None:
    """Return the number of the first known difference that explains a pair; None without one."""
    for number, (ours, theirs, applies) in KNOWN_DIFFERENCES.items():
        has_statuses = ours in (None, exchange.ours.status)
        has_statuses &= theirs in (None, exchange.theirs.status)
        if has_statuses and applies(exchange):
            return number
    return None
