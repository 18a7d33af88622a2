# SPDX-License-Identifier: Apache-2.0
"""The WSGI application where deployments of Placement look for it: `placement.wsgi.api`."""

from treeclaim.wsgi import application

__all__ = ["application"]
