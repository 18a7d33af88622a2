# SPDX-License-Identifier: Apache-2.0
"""The operations of the `treeclaim` extension under /treeclaim (contract page 99).

One folder for each noun. What its lists have in common is in `lists`.
"""
