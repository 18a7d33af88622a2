# SPDX-License-Identifier: Apache-2.0
"""Clients that measure: connections, and what they do."""
