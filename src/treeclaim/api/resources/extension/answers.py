# SPDX-License-Identifier: Apache-2.0
"""Answers of the extension's operations by handler and status, for the API description."""

from http import HTTPStatus

from treeclaim.api.protocol.wording import Schema
from treeclaim.api.resources.extension.holders.answers import CONSUMERS
from treeclaim.api.resources.extension.listing.answers import PROVIDERS
from treeclaim.api.resources.extension.totals.answers import TOTALS

BODIES: dict[tuple[str, HTTPStatus], Schema] = {
    ("list_providers_in_bulk", HTTPStatus.OK): PROVIDERS,
    ("list_allocations_in_bulk", HTTPStatus.OK): CONSUMERS,
    ("show_totals", HTTPStatus.OK): TOTALS,
}
