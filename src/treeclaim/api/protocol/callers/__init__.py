# SPDX-License-Identifier: Apache-2.0
"""The caller's identity, as authenticated, and the ids of requests."""
