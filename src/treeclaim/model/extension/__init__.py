# SPDX-License-Identifier: Apache-2.0
"""Values of the `treeclaim` extension alone (contract pages 98 and 99)."""
