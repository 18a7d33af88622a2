# SPDX-License-Identifier: Apache-2.0
"""Who calls: the identity that authentication vouches for, and the ids of requests."""
