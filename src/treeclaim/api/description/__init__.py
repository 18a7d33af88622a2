# SPDX-License-Identifier: Apache-2.0
"""The API description (OpenAPI), a pure function of the operations."""
