# SPDX-License-Identifier: Apache-2.0
"""What the `treeclaim` extension has under /treeclaim (contract page 99).

One folder for each noun. What its lists have in common is in `lists`.
"""
