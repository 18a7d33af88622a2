# SPDX-License-Identifier: Apache-2.0
"""The operations of each resource, with their schemas and responses."""
