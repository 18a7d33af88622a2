# SPDX-License-Identifier: Apache-2.0
"""Provider trees in files: the input of `treeclaim load` (docs/loading.md)."""
