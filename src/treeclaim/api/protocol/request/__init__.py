# SPDX-License-Identifier: Apache-2.0
"""Parsing and validation of bodies and query strings."""
