# SPDX-License-Identifier: Apache-2.0
"""What each term of a score is worth (contract page 98, section 2).

One module for each term; `term` says what all of them have in common, `combination` puts them
together.
"""
