# SPDX-License-Identifier: Apache-2.0
"""Choice of schedules: all with few preemptions, each state continued once.

The schedules that begin alike are a tree, whose nodes are the moments at which a session is chosen.
Two reductions cut it; `docs/decisions/0010-schedules-are-explored.md` says why nothing is lost.

- A state that was reached before, by other orders of independent steps, with the same session under
  way and no more preemptions, has been gone on from. Beginnings with fewer preemptions are tried
  first, so that this is nearly always so. (Musuvathi and Qadeer, "Partial-order reduction for
  context-bounded state exploration", 2007.)
- Nobody is let in before a statement that is independent of all that the others ever do: to let
  them in after it is the same. What they do is learned on the way; when something is learned that
  such a statement depends on, the others are let in before it after all.
"""

import heapq
from itertools import count

from tests.store.schedules.footprints import depends_on_some
from tests.store.schedules.orders import Histories, Order

_NEVER = 1 << 30


class Frontier:
    """The beginnings of schedules that are still to be tried.

    Args:
        sessions: Those that take part; what they touch is looked at again and again.
        preemptions: Most of a schedule.
        reduced: False for all schedules, however alike they are.
        alike: Whether all sessions do the same, so that it does not matter who begins.
    """

    def __init__(self, sessions, preemptions, *, reduced=True, alike=False):
        self.sessions = sessions
        self.alike = alike and reduced
        self.preemptions = preemptions
        self.reduced = reduced
        self.histories = Histories()
        self.observed = Histories()
        self._spent = {}
        self._led_to = {}
        self._pending = []
        self._put_off = []
        self._ages = count()

    def beginnings(self):
        """Yield the choices to begin with, of which more may be added meanwhile."""
        yield (), None
        tried = 0
        while self._pending or self._taken_up():
            # All that the serial orders do is known before anybody is interrupted.
            if self._pending[0][0] > tried:
                tried = self._pending[0][0]
                self._taken_up()
            spent, _, choices, node, before = heapq.heappop(self._pending)
            after = self._led_to.get(before)
            if self._spent.get(node, _NEVER) > spent and self._spent.get(after, _NEVER) > spent:
                yield choices, before

    def enter(self, nodes, spent):
        """Note that a node, by any of its names, is gone on from; False if that was done before."""
        if self.reduced and any(self._spent.get(node, _NEVER) <= spent for node in nodes):
            return False
        for node in nodes:
            self._spent[node] = spent
        return True

    def leads(self, before, after):
        """Note to which node the step of a session led."""
        if before is not None:
            self._led_to[before] = after

    def add(self, spent, choices, node, before):
        """Add a beginning.

        Args:
            spent: Its preemptions.
            choices: The sessions.
            node: To which it leads, unless its last step waits or fails.
            before: The state and the session of that step; None if the state is not known.
        """
        node = node if self.reduced else choices
        # Those with the same number of preemptions come depth first.
        heapq.heappush(self._pending, (spent, -next(self._ages), choices, node, before))

    def put_off(self, session, footprint, beginning):
        """Add a beginning only if others turn out to do what a statement of a session depends on."""
        self._put_off.append((session, footprint, beginning))

    def matters(self, session, footprint):
        """Return whether other sessions write what a statement of a session depends on, as far as is known."""
        return not self.reduced or any(
            depends_on_some(footprint, one.touched)
            for number, one in enumerate(self.sessions)
            if number != session
        )

    def _taken_up(self):
        """Add what was put off wrongly; return whether there was any."""
        put_off, self._put_off = self._put_off, []
        for session, footprint, beginning in put_off:
            if self.matters(session, footprint):
                self.add(*beginning)
            else:
                self._put_off.append((session, footprint, beginning))
        return bool(self._pending)


class Watch:
    """Follows one schedule, and adds to the frontier what could be done otherwise.

    Args:
        frontier: Of the case.
        prescribed: How many steps it was begun with; what could be done otherwise there is known.
        before: The state and the session of the last of them, where that is known.
        observations: Tells states by what is observed; None to tell them by the order alone.
    """

    def __init__(self, frontier, prescribed, before=None, observations=None):
        self._frontier = frontier
        self._prescribed = prescribed
        self._before = before
        self._order = Order(frontier.histories, len(frontier.sessions))
        self._observations = observations
        self._choices = []
        self._others = []
        self._putting_off = False

    def goes_on(self, moment, chosen, sessions):
        """See a moment before its step; False if the schedule need not be gone on with."""
        self._others = []
        if moment.number < self._prescribed:
            return True
        nodes = [(self._order.state, moment.last)]
        observed = None
        if self._observations is not None:
            observed = self._observations.state
            nodes.append((observed, moment.last))
            self._frontier.leads(self._before, nodes[-1])
            self._before = (observed, chosen)
        if not self._frontier.enter(nodes, moment.spent):
            return False
        self._putting_off = chosen == moment.last and not self._frontier.matters(
            chosen, sessions[chosen].footprint
        )
        if moment.last is None and self._frontier.alike:
            return True
        for other in moment.able:
            spent = moment.spent_by(other)
            if other != chosen and spent <= self._frontier.preemptions:
                session = sessions[other]
                state = self._order.state_after(other, session.next_step, session.footprint)
                before = None if observed is None else (observed, other)
                self._others.append((spent, (*self._choices, other), (state, other), before))
        return True

    def stepped(self, step):
        """See a step after it was done."""
        for beginning in self._others:
            # What a statement does that waits or fails, its footprint does not tell.
            if self._putting_off and not step.meets_all:
                self._frontier.put_off(step.session, step.footprint, beginning)
            else:
                self._frontier.add(*beginning)
        self._choices.append(step.session)
        self._order.add(step.session, step.statement, step.footprint, meets_all=step.meets_all)
        if self._observations is not None:
            self._observations.add(step)
