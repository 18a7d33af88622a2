# SPDX-License-Identifier: Apache-2.0
"""What is measured: functions of a world and its endpoints, which are asked in turn."""
