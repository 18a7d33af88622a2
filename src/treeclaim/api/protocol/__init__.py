# SPDX-License-Identifier: Apache-2.0
"""Parts that all operations share: versions, errors, media types, parameters, callers."""
