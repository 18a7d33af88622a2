# SPDX-License-Identifier: Apache-2.0
"""The pages at `/ui/`: static files that call the API with the user's token (contract page 99, section 7)."""
