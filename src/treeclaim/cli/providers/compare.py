# SPDX-License-Identifier: Apache-2.0
"""`treeclaim compare`: differences between the responses of two services."""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from treeclaim.cli.arguments import DeclaredCommand
from treeclaim.cli.connection import open_service_client
from treeclaim.cli.output import (
    FAILED,
    CommandError,
    convert_failures,
    print_json,
    print_lines,
    warn,
)
from treeclaim.cli.printing import show_progress
from treeclaim.comparison.access_log import parse_log
from treeclaim.comparison.comparison import ReadRequest
from treeclaim.comparison.services import ServiceComparison, compare_services, generate_reads
from treeclaim.model.microversions import MAXIMUM

_LATEST = f"{MAXIMUM.major}.{MAXIMUM.minor}"


class CompareServices(DeclaredCommand):
    """Compare the answers of two services, such as Placement and Treeclaim.

    Sends the same reads to both and lists the differences. Both need the same data: give both a copy of
    one database, or use 'treeclaim copy' first. Nothing is written. Known differences have the numbers of
    docs/differences.md. Exit status: 0 if nothing else differs, 1 if something does, 2 if the command failed.
    """

    example = (
        "http://controller:8778 http://127.0.0.1:8778 --requests /var/log/uwsgi/placement.log"
    )
    failure_status = FAILED

    arguments = f"""
        old_url:OLD-URL           the service in use, such as Placement
        new_url:NEW-URL           the service that is to replace it
        --requests ACCESS-LOG     make the reads in this log (of uWSGI, Apache, Placement or Treeclaim; - for standard input); without it, read everything that the old service has, and candidates of its classes
        --microversion 1.N = {_LATEST}  of reads for which the log names none
        --old-token TOKEN         token for the old service (or TREECLAIM_OLD_TOKEN, or OS_TOKEN)
        --new-token TOKEN         token for the new service (or TREECLAIM_NEW_TOKEN, or OS_TOKEN)
        -f,--format json|value = value  format of the result
    """

    def execute(self, options: argparse.Namespace) -> int:
        if not re.fullmatch(r"1\.\d{1,3}", options.microversion):
            text = f"--microversion: {options.microversion!r} is not one such as {_LATEST}"
            raise CommandError(text)
        reads = None if options.requests is None else list(_read_log(options))
        with (
            open_service_client("old", options) as old_client,
            open_service_client("new", options) as new_client,
            show_progress() as report,
        ):
            if reads is None:
                reads = list(generate_reads(old_client, options.microversion))
            outcome = compare_services(old_client, new_client, reads, report)
        if options.format == "json":
            print_json(outcome.to_document())
        else:
            print_lines(*_format_outcome(outcome))
        return 1 if outcome.unknown_differences else 0


def _read_log(options: argparse.Namespace) -> Iterator[ReadRequest]:
    """Yield each distinct read of the log."""
    path = options.requests
    with convert_failures(path):
        if path == "-":
            log = parse_log(sys.stdin)
        else:
            with Path(path).open(encoding="utf-8", errors="replace") as lines:
                log = parse_log(lines)
    reasons = ", ".join(f"{count} {reason}" for reason, count in log.skip_reasons.most_common(10))
    if not log.reads:
        raise CommandError(
            f"{path}: no read of the Placement API in it ({reasons or 'it is empty'})",
            "lines of uWSGI, Apache, Placement's and Treeclaim's request log are known",
        )
    warn(
        f"{path}: {log.reads.total()} reads, {len(log.reads)} of them different"
        + (f"; left out: {reasons}" if reasons else "")
    )
    if log.lacks_versions:
        warn(f"{path}: a read without a microversion is made at {options.microversion}")
    for request in log.reads:
        yield replace(request, version=request.version or options.microversion)


def _format_outcome(outcome: ServiceComparison) -> Iterator[str]:
    known_total, different_total = (
        outcome.known_differences.total(),
        outcome.unknown_differences.total(),
    )
    total = outcome.equal_count + outcome.unsettled_count + known_total + different_total
    yield f"{total} reads compared: {outcome.equal_count} equal, {known_total} known differences, {different_total} others"
    if outcome.unsettled_count:
        yield f"{outcome.unsettled_count} differed only at first, as clients wrote meanwhile"
    for number, count in sorted(outcome.known_differences.items()):
        yield f"{count} times known difference {number} of docs/differences.md"
    for kind, count in outcome.unknown_differences.most_common():
        yield f"{count} times different: {' '.join(kind)}"
        yield f"    {outcome.examples[kind]}"
