# SPDX-License-Identifier: Apache-2.0
"""Two endpoints of the Placement API, the same random requests, and every difference in the answers.

The comparison starts from nothing but HTTP: `python -m tests.blackbox --ours URL
--theirs URL`. It empties both endpoints, so never point it at one that is in use.

    requests.py            what is sent, and what is left open until it is sent
    pools.py               the names and ids that random requests are made of
    worlds.py              writes that plant a small random world
    writes.py              one random write to a world
    reads.py               one random read of a world
    candidate_queries.py   one random query for allocation candidates
    endpoint.py            sends requests, and empties an endpoint
    differences.py         how two answers differ, phrases of refusals included
    episode.py             one world from planting to its end, on both endpoints
"""
