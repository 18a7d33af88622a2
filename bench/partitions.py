# SPDX-License-Identifier: Apache-2.0
"""What clients get done at once who claim partitions of cards, beside plain inventories of the same hosts.

`python -m bench.partitions [--database sqlite] [--claims 800] [--turns 3]`: one service; the kinds of claims
take turns (contract page 102, section 2).
"""

import argparse
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from bench.clients.endpoint import median
from bench.contention import OURS, Client, Service, Step
from tests import peer
from tests.databases import KINDS, server_of
from treeclaim.client.topology.mig import CARDS

_CARDS = 50
_PLENTY = 1_000_000
"""Of each inventory, so that no claim is refused."""

_HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39, treeclaim latest"}
_PLAIN = "VCPU"
_KINDS = {
    "plain": _PLAIN,
    "a partition of one slice": "CUSTOM_MIG_1G_10GB",
    "a partition of three": "CUSTOM_MIG_3G_40GB",
    "a whole card": "CUSTOM_MIG_7G_80GB",
}


def _uuid_of(card: int, name: str) -> str:
    return str(uuid.uuid5(uuid.UUID(int=card + 1), name))


def _entries(card: int) -> Iterator[dict[str, Any]]:
    """Yield a card with all its partitions, as `POST /treeclaim/providers` takes them."""
    root = _uuid_of(card, "")
    plain = {key: {"total": _PLENTY} for key in (_PLAIN, *CARDS["a100-80gb"].slices())}
    yield {"uuid": root, "name": f"gpu{card}", "inventories": plain}
    for name, inventories in CARDS["a100-80gb"].positions():
        stock = {}
        for kind, told in inventories.items():
            consumes = [{**use, "provider": root} for use in told["consumes"]]
            stock[kind] = {"total": _PLENTY, "consumes": consumes}
        yield {
            "uuid": _uuid_of(card, name),
            "name": f"gpu{card}_{name}",
            "parent_provider_uuid": root,
            "inventories": stock,
        }


def _step(resource_class: str, providers: Sequence[str]) -> Step:
    def step(client: Client, number: int) -> int:
        provider = providers[number % len(providers)]
        return client.claim({provider: {"resources": {resource_class: 1}}})

    return step


def main() -> None:
    """Let the kinds of claims take turns, and print how many were done, and the ratios."""
    parser = argparse.ArgumentParser(prog="python -m bench.partitions", description=__doc__)
    parser.add_argument("--database", choices=KINDS, default="sqlite")
    parser.add_argument("--claims", type=int, default=800)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(peer.new_folder()))
        database = stack.enter_context(server_of(options.database).database(folder))
        url, _ = stack.enter_context(peer.treeclaim_on(database, folder, 1))
        providers: dict[str, list[str]] = {}
        for card in range(_CARDS):
            entries = list(_entries(card))
            for entry in entries:
                for kind in entry["inventories"]:
                    providers.setdefault(kind, []).append(entry["uuid"])
            body = {"providers": entries, "create_names": True}
            answer = httpx.post(
                f"{url}/treeclaim/providers", json=body, headers=_HEADERS, timeout=60
            )
            if answer.status_code != HTTPStatus.OK:
                raise SystemExit(answer.text)
        service = Service(OURS, url)
        done: dict[str, list[float]] = {name: [] for name in _KINDS}
        for _ in range(options.turns):
            for name, kind in _KINDS.items():
                turn = service.turn(_step(kind, providers[kind]), options.clients, options.claims)
                done[name].append(turn.completed_per_second)
        for name, rates in done.items():
            ratio = median(rates) / median(done["plain"])
            print(f"{name}: {median(rates):.0f} claims a second, {ratio:.2f} of plain ones")


if __name__ == "__main__":
    main()
