# SPDX-License-Identifier: Apache-2.0
"""The database connection: engines, transactions, dialects and the meaning of errors; independent of the tables."""
