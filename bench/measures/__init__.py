# SPDX-License-Identifier: Apache-2.0
"""Measures: functions of a world and its endpoints, which take turns."""
