# SPDX-License-Identifier: Apache-2.0
"""Attempts of a write, commits, and the client's view of a failure.

Knows the feed and what is below it.
"""
