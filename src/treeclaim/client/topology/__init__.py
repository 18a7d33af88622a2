# SPDX-License-Identifier: Apache-2.0
"""Provider trees in files: the input of `treeclaim load` (docs/loading.md)."""

from treeclaim.client.topology.document import DocumentFault
from treeclaim.client.topology.file import (
    PlannedProvider,
    Topology,
    TopologyError,
    parse_topology,
    read_topology,
)
from treeclaim.client.topology.names import as_written, rename_consumed

__all__ = [
    "DocumentFault",
    "PlannedProvider",
    "Topology",
    "TopologyError",
    "as_written",
    "parse_topology",
    "read_topology",
    "rename_consumed",
]
