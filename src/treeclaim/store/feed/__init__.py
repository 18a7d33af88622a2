# SPDX-License-Identifier: Apache-2.0
"""The change feed records the providers that each commit changed, for readers that follow the database."""
