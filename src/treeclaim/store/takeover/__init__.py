# SPDX-License-Identifier: Apache-2.0
"""Checks of a database before a takeover, and data migrations that complete its rows."""
