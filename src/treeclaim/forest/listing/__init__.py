# SPDX-License-Identifier: Apache-2.0
"""Pages of providers, and sums over them (contract page 99, sections 1 and 3).

This package uses the columns and the filters of `domains`, and none of the search.
"""
