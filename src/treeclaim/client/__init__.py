# SPDX-License-Identifier: Apache-2.0
"""A client of any Placement API endpoint."""

from treeclaim.client.client import Client, ClientError

__all__ = ["Client", "ClientError"]
