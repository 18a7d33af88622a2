# SPDX-License-Identifier: Apache-2.0
"""Values that only the `treeclaim` extension has (contract pages 98 and 99)."""
