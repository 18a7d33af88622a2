# SPDX-License-Identifier: Apache-2.0
"""Requests of a client: queries, flavors as queries, bodies of claims."""
