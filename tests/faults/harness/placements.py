# SPDX-License-Identifier: Apache-2.0
"""Clients that place, and say it again where an answer got lost (contract page 98, section 4)."""

import random
import time
import uuid
from dataclasses import dataclass
from typing import Any

from tests.bodies import wanted_by
from tests.faults.harness.service import body_of

REPEATS = 3
VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
PATH = "/treeclaim/placements"
_REFUSALS = ("treeclaim.unplaced", "placement.concurrent_update")


@dataclass(frozen=True, slots=True)
class LostPlacing:
    """A placement of which nobody knows what became: nothing, or all of it.

    `amount` is what each consumer was to get, all on different hosts.
    """

    start: float
    body: dict
    amount: int

    @property
    def consumers(self):
        return self.body["requests"][0]["consumers"]


class Placing:
    """A client that places consumers, as a part of a load."""

    load: Any
    chance: random.Random

    def send(self, method, path, body=None, headers=None):
        """The answer to a request, None if it got lost."""
        raise NotImplementedError

    def place(self):
        """Place some consumers on different hosts; repeat the same call while answers get lost."""
        amount = self.chance.randint(1, 7)
        most = self.chance.choice([1, len(self.load.world.hosts)])
        body = _body(amount, self.chance.randint(1, most))
        start = time.monotonic()
        repeated = False
        for number in range(REPEATS):
            repeated = number > 0
            answer = self.send("POST", PATH, body, VERSION)
            if answer is not None:
                break
        end = time.monotonic()
        lost = LostPlacing(start, body, amount)
        if answer is None:
            self.load.placings.append(lost)
        elif answer.status_code in {200, 201}:
            self._placed(lost, answer.json(), end)
        elif answer.status_code != 409 or not any(code in answer.text for code in _REFUSALS):
            self.load.problems.append((answer.status_code, answer.text, body))
        else:
            self.load.count("unplaced")
            if repeated:
                # An earlier call may be under way still, and come true.
                self.load.placings.append(lost)

    def _placed(self, lost, told, end):
        result = amounts_told(told)
        if not is_whole(lost, result):
            self.load.problems.append(("not what was asked for", lost, told))
            return
        self.load.count("success")
        self.load.count("placed")
        self.load.placed(lost, result, end)
        self.keep_placed(result)

    def keep_placed(self, placed):
        """Take over consumers that are placed, as those that were claimed for."""
        raise NotImplementedError


def _body(amount, count):
    request = wanted_by(
        [str(uuid.uuid4()) for _ in range(count)],
        f"resources=VCPU:{amount}&order_by=spread",
        project_id="project",
        user_id="user",
    )
    # Without a rule, a single consumer is placed together with those of other calls.
    rules = [{"domains": "tree", "max_per_domain": 1}] if count > 1 else []
    return {"requests": [request], "rules": rules}


def amounts_told(told):
    """Return the allocations of each consumer of a response: amounts by provider."""
    return {
        placement["consumer"]: {
            provider: part["resources"]["VCPU"]
            for provider, part in placement["allocations"].items()
        }
        for placement in told["placements"]
    }


def is_whole(lost, allocations):
    """Return whether all consumers of a call have the requested amounts, on different hosts."""
    hosts = [host for amounts in allocations.values() for host in amounts]
    return (
        list(allocations) == lost.consumers
        and all(list(amounts.values()) == [lost.amount] for amounts in allocations.values())
        and len(set(hosts)) == len(hosts)
    )


def judge_lost(client, lost, allocations):
    """Check that nothing is placed in half, and that the call finds what it placed before.

    Args:
        client: Client of the service.
        lost: The call.
        allocations: Amounts of its consumers by provider.
    """
    placed = {consumer: amounts for consumer, amounts in allocations.items() if amounts}
    assert not placed or is_whole(lost, placed), (lost, allocations)
    if placed:
        again = body_of(client, PATH, method="POST", json=lost.body, headers=VERSION)
        assert amounts_told(again) == placed
    return bool(placed)
