# SPDX-License-Identifier: Apache-2.0
"""Why a request has no candidate, found by searching with fewer constraints.

This package may import all other packages of the Forest.
"""
