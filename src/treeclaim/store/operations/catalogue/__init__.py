# SPDX-License-Identifier: Apache-2.0
"""Writes of traits and resource classes."""
