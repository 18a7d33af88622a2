# SPDX-License-Identifier: Apache-2.0
"""How bodies and query strings are read and checked."""
