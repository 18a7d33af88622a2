# SPDX-License-Identifier: Apache-2.0
"""Holds of a load, one on each host: clients draw from them, and what they drew comes back.

What a hold has and what is drawn from it are together what its keeper last wrote, whatever clients
do meanwhile (contract page 100, section 2).
"""

import time
import uuid
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tests.faults.harness.linearizability import Step
from tests.faults.harness.service import body_of

HELD = 15
"""Units of VCPU that each hold has in the beginning."""

VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
OWNER = {"project_id": "project", "user_id": "user"}


def body_of_hold(host, amount, generation, **more):
    allocations = {host: {"resources": {"VCPU": amount}}}
    return OWNER | {"allocations": allocations, "consumer_generation": generation} | more


def make_holds(client, hosts):
    holds = {host: str(uuid.uuid4()) for host in hosts}
    for host, hold in holds.items():
        body = body_of_hold(host, HELD, None, hold={"returns": True})
        put = client.put(f"/allocations/{hold}", json=body, headers=VERSION)
        assert put.status_code == 204, put.text
    return holds


def drawn_of(shown):
    """Return the drawn amounts of a consumer by provider, from its document."""
    drawn = defaultdict(int)
    for by_provider in shown.get("drawn_from", {}).values():
        for provider, amounts in by_provider.items():
            drawn[provider] += sum(amounts.values())
    return dict(drawn)


def passed_on(before, after, drawn):
    """Return the drawn amounts after a write, and the amounts that return to the hold of each provider.

    Args:
        before: What each consumer of the write holds by provider.
        after: What each will hold, in the order of the write.
        drawn: What each has drawn by provider.
    """
    grows = {
        (one, provider): amount - before[one].get(provider, 0)
        for one, amounts in after.items()
        for provider, amount in amounts.items()
    }
    left = {one: defaultdict(int, drawn[one]) for one in after}
    back = defaultdict(int)
    for one in after:
        for provider, amount in drawn[one].items():
            given = max(amount - after[one].get(provider, 0), 0)
            left[one][provider] -= given
            for taker in after:
                passed = max(min(given, grows.get((taker, provider), 0)), 0)
                if passed:
                    grows[taker, provider] -= passed
                    left[taker][provider] += passed
                    given -= passed
            back[provider] += given
    return {one: {p: n for p, n in found.items() if n} for one, found in left.items()}, back


@dataclass(frozen=True, slots=True)
class Kept:
    """A write of a hold: what it had, and will have beside what is drawn."""

    host: str
    start: float
    held: int
    wanted: int

    def step(self, end):
        """The effect of a write on its provider, which was accepted as no other client had drawn meanwhile."""
        change = self.wanted - self.held
        return Step("success", self.start, end, change, 1, held=change, seen=self.held)


class Keeping:
    """Calls of a client that lets holds grow and shrink, and changes their terms.

    Attributes:
        totals: What each host's hold has and what is drawn from it, together.
        doubts: By host the write whose answer got lost; the hold is left alone then.
    """

    load: Any
    chance: Any
    totals: dict
    doubts: dict

    def send(self, method, path, body=None, headers=None):
        """The answer to a request, None if it got lost."""
        raise NotImplementedError

    def keep(self, host):
        """Write the hold of a host, if nobody else does meanwhile."""
        hold = self.load.world.holds[host]
        shown = self.send("GET", f"/allocations/{hold}", headers=VERSION)
        if shown is None or shown.status_code != 200:
            return
        held = self.held(host, shown.json())
        most = max(2 * HELD - self.totals[host], 1)
        change = Kept(host, time.monotonic(), held, max(held + self.chance.randint(-2, most), 1))
        body = body_of_hold(
            host,
            change.wanted,
            shown.json()["consumer_generation"],
            consumer_type="TREECLAIM_HOLD",
        )
        answer = self.send("PUT", f"/allocations/{hold}", body, VERSION)
        if answer is None:
            self.doubts[host] = change
        elif answer.status_code == 204:
            self.load.count("kept")
            self.load.saw(host, change.step(time.monotonic()))
            self.totals[host] += change.wanted - held
        elif answer.status_code != 409:
            self.load.problems.append((answer.status_code, answer.text, change))

    def held(self, host, shown):
        """Return the held amounts; with the drawn amounts they are the written ones."""
        held = amount_at(host, shown["allocations"])
        drawn = shown["hold"]["drawn"].get(host, {}).get("VCPU", 0)
        if held + drawn != self.totals[host]:
            self.load.problems.append(("lost between a hold and who draws", host, shown))
        return held

    def change_terms(self, host):
        """Change what concerns nobody who draws: no generation moves."""
        terms = {"note": str(self.chance.random()), "until": "2999-01-01T00:00:00Z"}
        body = {"holds": {self.load.world.holds[host]: terms}}
        answer = self.send("POST", "/treeclaim/holds", body, VERSION)
        if answer is not None and (answer.status_code != 200 or answer.json()["updated"] != 1):
            self.load.problems.append((answer.status_code, answer.text, body))

    def judge(self, client, host, drawn):
        """Compare a hold with what was written, and with what consumers have drawn.

        Args:
            client: Of the service.
            host: Whose hold it is.
            drawn: What all consumers have drawn there.

        Returns:
            What it has.
        """
        shown = body_of(client, f"/allocations/{self.load.world.holds[host]}", headers=VERSION)
        doubt = self.doubts.get(host)
        held = amount_at(host, shown["allocations"])
        if doubt is not None and held + drawn != self.totals[host]:
            self.totals[host] += doubt.wanted - doubt.held
            self.load.saw(host, doubt.step(float("inf")))
        assert shown["hold"]["drawn"].get(host, {}).get("VCPU", 0) == drawn, (shown, drawn)
        assert held + drawn == self.totals[host], (shown, self.totals[host])
        return held


def amount_at(host, allocations):
    """Return how much VCPU is held at a host."""
    return allocations.get(host, {}).get("resources", {}).get("VCPU", 0)
