# SPDX-License-Identifier: Apache-2.0
"""Treeclaim: trees of resource providers, candidates for requests, claims that never overbook."""

__version__ = "0.1.0"
