# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as bytes: the head of a request, an answer in the making, refusals.

Nothing here reads from a socket or waits.
"""
