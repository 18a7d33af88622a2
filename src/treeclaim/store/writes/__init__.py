# SPDX-License-Identifier: Apache-2.0
"""How a write is carried out: attempts, commits, and what a failure means to the client.

Knows the feed and what is below it.
"""
