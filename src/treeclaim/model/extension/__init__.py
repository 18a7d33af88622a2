# SPDX-License-Identifier: Apache-2.0
"""Values of the `treeclaim` extension (contract pages 98 to 102)."""
