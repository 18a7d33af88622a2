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
from treeclaim.client.queries import CandidateQuery, query_of
from treeclaim.client.retry import Patience
from treeclaim.client.session import make_adapter
from treeclaim.client.watching import CursorExpiredError, follow, watch
from treeclaim.model.flavors import Flavor, FlavorError

__all__ = [
    "CandidateQuery",
    "Client",
    "ClientError",
    "ConsumerExistsError",
    "CursorExpiredError",
    "Flavor",
    "FlavorError",
    "LostConnectionError",
    "Patience",
    "UnreachableError",
    "UnsupportedFeatureError",
    "follow",
    "make_adapter",
    "query_of",
    "watch",
]
