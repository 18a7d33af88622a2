# SPDX-License-Identifier: Apache-2.0
"""Programs that make files of this repository."""
