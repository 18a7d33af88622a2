# SPDX-License-Identifier: Apache-2.0
"""The pages at `/ui/`: static files that call the API with the user's own token.

Rules: contract page 99, section 7. Knows nothing of the service; the files are in `static`.
"""
