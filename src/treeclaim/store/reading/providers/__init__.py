# SPDX-License-Identifier: Apache-2.0
"""Loads providers with all parts for a Forest, as records or as arrays."""
