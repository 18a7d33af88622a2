# SPDX-License-Identifier: Apache-2.0
"""The WSGI application under the name that web servers know (contract page 05, section 3.1)."""

from treeclaim.wsgi import application

__all__ = ["application"]
