# SPDX-License-Identifier: Apache-2.0
"""How many consumers fit (contract page 98, section 5): by numbers where they decide, else by placing.

Knows the candidates and questions of placing, not the placer.
"""
