# SPDX-License-Identifier: Apache-2.0
"""Bodies of answers as bytes.

This package imports the search, the divisions and the packages below them.
"""
