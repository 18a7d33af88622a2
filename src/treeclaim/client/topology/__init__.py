# SPDX-License-Identifier: Apache-2.0
"""Provider trees as people write them down: the files of `treeclaim load` (docs/loading.md).

A file is read and checked as a whole, compared with what an endpoint has, and brought there. This
room knows the client; nothing here prints.
"""

from treeclaim.client.topology.document import Problem
from treeclaim.client.topology.planned import (
    Parent,
    PlannedProvider,
    Topology,
    TopologyError,
    aggregate_uuid,
)
from treeclaim.client.topology.reading import parse_topology, read_topology

__all__ = [
    "Parent",
    "PlannedProvider",
    "Problem",
    "Topology",
    "TopologyError",
    "aggregate_uuid",
    "parse_topology",
    "read_topology",
]
