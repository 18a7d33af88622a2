# SPDX-License-Identifier: Apache-2.0
"""Reading and checking of bodies and query strings."""
