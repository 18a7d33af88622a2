# SPDX-License-Identifier: Apache-2.0
"""Why a request has no candidate, found by searching with fewer constraints.

Knows the whole of the Forest.
"""
