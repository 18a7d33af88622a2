# SPDX-License-Identifier: Apache-2.0
"""The operations of the `treeclaim` extension under /treeclaim (contract page 99)."""
