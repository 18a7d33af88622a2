# SPDX-License-Identifier: Apache-2.0
"""Clients that measure: connections, endpoints and loads."""
