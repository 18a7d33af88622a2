# SPDX-License-Identifier: Apache-2.0
"""Compares the responses of two Placement API services to the same reads."""
