# SPDX-License-Identifier: Apache-2.0
"""Compares two services of the Placement API by the answers to the same reads."""
