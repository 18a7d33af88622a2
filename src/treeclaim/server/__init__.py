# SPDX-License-Identifier: Apache-2.0
"""The server of `treeclaim serve`: an event loop that speaks HTTP, threads that run WSGI.

A connection holds no thread while its request arrives or its answer leaves, only while the
application works. Every wait for a client has a deadline, and every buffer a bound.
"""
