# SPDX-License-Identifier: Apache-2.0
"""A client of any Placement API endpoint."""

from treeclaim.client.client import Client
from treeclaim.client.errors import (
    ClientError,
    ConsumerExistsError,
    FlavorError,
    UnsupportedFeatureError,
)
from treeclaim.client.requests.flavors import Flavor, query_of
from treeclaim.client.requests.placing import (
    Capacity,
    Placed,
    PlacedConsumer,
    PlacingRequest,
    PlacingRule,
)
from treeclaim.client.requests.queries import CandidateQuery
from treeclaim.client.transport import PlainTransport, SessionTransport
from treeclaim.client.versions import Need, ServerVersions

__all__ = [
    "CandidateQuery",
    "Capacity",
    "Client",
    "ClientError",
    "ConsumerExistsError",
    "Flavor",
    "FlavorError",
    "Need",
    "Placed",
    "PlacedConsumer",
    "PlacingRequest",
    "PlacingRule",
    "PlainTransport",
    "ServerVersions",
    "SessionTransport",
    "UnsupportedFeatureError",
    "query_of",
]
