# SPDX-License-Identifier: Apache-2.0
"""The benchmark: generated worlds, load over HTTP, and a report; for any Placement API endpoint."""
