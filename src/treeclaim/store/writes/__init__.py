# SPDX-License-Identifier: Apache-2.0
"""How a write runs: attempts, commits, and the client's view of a failure.

Knows the feed and what is below it.
"""
