# SPDX-License-Identifier: Apache-2.0
"""Measurements: functions of a world and its endpoints, which are asked in turn."""
