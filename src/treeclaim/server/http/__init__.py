# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 for a WSGI application: an event loop for the connections, threads for the application."""
