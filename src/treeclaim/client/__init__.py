# SPDX-License-Identifier: Apache-2.0
"""A client of any Placement API endpoint."""

from treeclaim.client.client import Client
from treeclaim.client.errors import (
    ClientError,
    ConsumerExistsError,
    LostConnectionError,
    UnreachableError,
    UnsupportedFeatureError,
)
from treeclaim.client.patience import Patience
from treeclaim.client.requests.placing import (
    Capacity,
    Hold,
    Placed,
    PlacedConsumer,
    PlacingRequest,
    PlacingRule,
)
from treeclaim.client.requests.queries import CandidateQuery, query_of
from treeclaim.client.transport import PlainTransport, SessionTransport
from treeclaim.client.versions import Need, ServerVersions
from treeclaim.client.watching import Change, Changes, CursorExpiredError, follow, watch
from treeclaim.model.flavors import Flavor, FlavorError

__all__ = [
    "CandidateQuery",
    "Capacity",
    "Change",
    "Changes",
    "Client",
    "ClientError",
    "ConsumerExistsError",
    "CursorExpiredError",
    "Flavor",
    "FlavorError",
    "Hold",
    "LostConnectionError",
    "Need",
    "Patience",
    "Placed",
    "PlacedConsumer",
    "PlacingRequest",
    "PlacingRule",
    "PlainTransport",
    "ServerVersions",
    "SessionTransport",
    "UnreachableError",
    "UnsupportedFeatureError",
    "follow",
    "query_of",
    "watch",
]
