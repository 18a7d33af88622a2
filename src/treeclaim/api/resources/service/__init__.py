# SPDX-License-Identifier: Apache-2.0
"""The root document and the description of the API."""
