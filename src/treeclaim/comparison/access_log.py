# SPDX-License-Identifier: Apache-2.0
"""Finds reads of the Placement API in access logs of Treeclaim, Placement, uWSGI and Apache."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from treeclaim.comparison.comparison import ReadRequest

MOST_REQUESTS = 100_000
"""Most distinct requests of a comparison: about 50 MB."""

_METHODS = "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS"

_LINES = (
    # Treeclaim and Placement: "GET /traits" status: 200 len: 9 microversion: 1.39
    re.compile(
        rf'"(?P<method>{_METHODS}) (?P<target>\S+)" status: \d+ len: \S+ microversion: (?P<version>\S+)'
    ),
    # Apache, nginx and gunicorn: "GET /placement/traits HTTP/1.1" 200
    re.compile(rf'"(?P<method>{_METHODS}) (?P<target>\S+) HTTP/[0-9.]+" \d+'),
    # uWSGI: [Sat Nov 28 12:00:00 2026] GET /traits => generated 9 bytes
    re.compile(rf"(?:^|\] )(?P<method>{_METHODS}) (?P<target>\S+) => generated \d+ bytes"),
)

_ROUTES = "resource_providers|resource_classes|traits|aggregates|allocations|allocation_candidates|usages"
_TARGET = re.compile(rf"(?:[a-z]+://[^/]+)?[^?]*?(?P<path>/(?:{_ROUTES})(?:[/?].*)?)")
"""A target of the API, with any host and prefix."""

_VERSION = re.compile(r"1\.\d+")


@dataclass(slots=True)
class LoggedRequests:
    """Counts of the distinct reads of a log, and of its skipped lines by reason."""

    reads: Counter[ReadRequest] = field(default_factory=Counter)
    skip_reasons: Counter[str] = field(default_factory=Counter)

    @property
    def lacks_versions(self) -> bool:
        """Whether a read has no microversion."""
        return any(request.version is None for request in self.reads)


def parse_log(lines: Iterable[str]) -> LoggedRequests:
    """Count the reads in the lines of a log."""
    log = LoggedRequests()
    for line in lines:
        match = next((match for form in _LINES if (match := form.search(line))), None)
        if match is None:
            log.skip_reasons["not a request"] += 1
            continue
        target = _TARGET.fullmatch(match["target"])
        if match["method"] != "GET":
            log.skip_reasons[f"{match['method']} is no read"] += 1
        elif target is None:
            log.skip_reasons["not of the Placement API"] += 1
        elif len(log.reads) >= MOST_REQUESTS:
            log.skip_reasons[f"more than {MOST_REQUESTS:,} different requests"] += 1
        else:
            version = match.groupdict().get("version") or ""
            is_version = _VERSION.fullmatch(version)
            log.reads[ReadRequest(target["path"], version if is_version else None)] += 1
    return log
