# SPDX-License-Identifier: Apache-2.0
"""The server of `treeclaim serve`: an event loop for HTTP, and threads for the WSGI application.

A connection occupies a thread only while the application runs. Every wait for a client has a deadline, and every buffer
a bound.
"""
