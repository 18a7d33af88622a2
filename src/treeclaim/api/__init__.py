# SPDX-License-Identifier: Apache-2.0
"""HTTP on Falcon: every operation of the Placement API."""
