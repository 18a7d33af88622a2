# SPDX-License-Identifier: Apache-2.0
"""The API description (OpenAPI), derived from the operations."""
