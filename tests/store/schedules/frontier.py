# SPDX-License-Identifier: Apache-2.0
"""Choice of schedules: all with few preemptions, each state continued once.

Schedules form a tree by their common prefixes; each node is a choice of the next session. Three reductions prune it;
`docs/decisions/0010-schedules-are-explored.md` proves that they lose no outcome.

- A state that an earlier schedule reached, with the same running session and no more preemptions, is not continued
  again. Prefixes with fewer preemptions are tried first, so this applies nearly always. (Musuvathi and Qadeer,
  "Partial-order reduction for context-bounded state exploration", 2007.)
- A session is not preempted before a statement that is independent of all statements of the other sessions, because a
  preemption after it has the same effect. Statements become known during the exploration; if a later one conflicts,
  the preemption is tried after all.
- A guest session that was scheduled before a step of a host is not scheduled after it if both orders lead to the same
  state (`Frontier._followed`). One schedule shows this for all steps of a transaction whose lock the guest waits for.
"""

import heapq
from dataclasses import dataclass

from tests.store.schedules.footprints import depends_on_some
from tests.store.schedules.orders import Histories, Order
from tests.store.schedules.schedule import Step

_NEVER = 1 << 30


@dataclass(frozen=True)
class Arrival:
    """The node after a step.

    Attributes:
        node: The state by its observations, and the running session.
        step: The step.
        has_ids: Whether the result of the step has generated ids, which are compared only up to a renaming.
    """

    node: tuple
    step: Step
    has_ids: bool

    @property
    def state(self):
        return self.node[0]


@dataclass
class Guest:
    """A session that ran between two steps of another session, its host.

    Attributes:
        without: The state before the guest ran; later, after further steps of the host without the guest.
        number: Number of the guest.
        waits: Whether its first step waits.
        keeps_locks: Whether a later step waits, and the guest still has all locks that it acquired.
        state: The state in which the guest stopped; later, after the same steps of the host.
    """

    without: tuple
    number: int
    waits: bool
    keeps_locks: bool
    state: tuple


class Frontier:
    """The prefixes of schedules to be tried.

    Args:
        sessions: The sessions, whose footprints grow during the exploration.
        preemptions: Most preemptions of a schedule.
        reduced: Whether to prune the tree.
        alike: Whether all sessions run the same operations, so that the first session is arbitrary.
        keeps_locks: Whether only the end or the failure of a transaction releases its locks.
    """

    def __init__(self, sessions, preemptions, *, reduced=True, alike=False, keeps_locks=False):
        self.sessions = sessions
        self.alike = alike and reduced
        self.keeps_locks = keeps_locks
        self.preemptions = preemptions
        self.reduced = reduced
        self.histories = Histories()
        self.observed = Histories()
        self._spent = {}
        self._arrivals = {}
        self._ends = {}
        self._guests = []
        self._pending = []
        self._deferred = []

    def beginnings(self):
        """Yield the prefixes with the state and session of their last step; callers add further prefixes meanwhile."""
        yield (), None
        tried = 0
        while self._pending or self._add_deferred():
            # The statements of all serial orders are known before the first preemption.
            if self._pending[0][0] > tried:
                tried = self._pending[0][0]
                self._add_deferred()
            spent, _, choices, node, before = heapq.heappop(self._pending)
            nodes = [node]
            if before in self._arrivals:
                nodes.append(self._arrivals[before].node)
            if spent == self.preemptions:
                nodes.append(self._ends.get(before))
            if all(self._spent.get(node_to_try, _NEVER) > spent for node_to_try in nodes):
                yield choices, before

    def enter(self, nodes, spent):
        """Record the continuation of a node, given by all its identities; False if an earlier schedule continued it."""
        if self.reduced and any(self._spent.get(node, _NEVER) <= spent for node in nodes):
            return False
        for node in nodes:
            self._spent[node] = spent
        return True

    def record_arrival(self, before, arrival):
        """Record the node after a step; `before` is the state and the session."""
        if before is not None:
            self._arrivals[before] = arrival

    def add_guest(self, guest):
        """Add a guest that has stopped or waits."""
        self._guests.append(guest)

    def follow_guests(self):
        """Derive from the schedules so far the nodes of guests that run after later steps of their hosts."""
        self._guests = [guest for guest in self._guests if self._followed(guest)]

    def _followed(self, guest):
        """Derive the nodes of a guest after later steps of its host; return False once no later step can show more.

        Running the guest after a step of the host is equivalent if neither affects the other. This holds for a step
        with one of these properties:

        - It releases no lock, and the guest's first step waits: the awaited lock is held before and after.
        - It releases no lock, and the guest waits with all its locks: none of them blocks the step.
        - It is independent of all statements of the guest.
        - It only reads, and its result is equal and has no generated ids.
        """
        host = 1 - guest.number
        while True:
            alone_arrival = self._arrivals.get((guest.without, host))
            shared_arrival = self._arrivals.get((guest.state, host))
            if alone_arrival is None or shared_arrival is None:
                return True
            step = shared_arrival.step
            if step.meets_all or alone_arrival.state[host] != shared_arrival.state[host]:
                return False
            guest.without, guest.state = alone_arrival.state, shared_arrival.state
            frees = bool(step.footprint.frees)
            if guest.waits and not frees:
                self._arrivals.setdefault((guest.without, guest.number), shared_arrival)
            elif (
                (guest.keeps_locks and not frees)
                or (step.reads_only and not shared_arrival.has_ids)
                or not self.matters(host, step.footprint)
            ):
                self._ends[guest.without, guest.number] = shared_arrival.node
            else:
                return False

    def add(self, spent, choices, node, before):
        """Add a prefix.

        Args:
            spent: Its preemptions.
            choices: Its sessions in their order.
            node: The node after it, unless its last step waits or fails.
            before: State and session of its last step; None for an unknown state.
        """
        node = node if self.reduced else choices
        # Short prefixes first, because their results make longer prefixes unnecessary.
        heapq.heappush(self._pending, (spent, len(choices), choices, node, before))

    def defer(self, session, footprint, beginning):
        """Defer a prefix until a statement of another session conflicts with the footprint."""
        self._deferred.append((session, footprint, beginning))

    def matters(self, session, footprint):
        """Return whether a known statement of another session conflicts with a footprint."""
        return not self.reduced or any(
            depends_on_some(footprint, participant.touched)
            for number, participant in enumerate(self.sessions)
            if number != session
        )

    def _add_deferred(self):
        """Add the deferred prefixes that conflict by now; return whether any prefix is pending."""
        deferred, self._deferred = self._deferred, []
        for session, footprint, beginning in deferred:
            if self.matters(session, footprint):
                self.add(*beginning)
            else:
                self._deferred.append((session, footprint, beginning))
        return bool(self._pending)


class Watch:
    """Follows one schedule, and adds its alternatives to the frontier.

    Args:
        frontier: The frontier.
        prescribed: Number of steps of the prefix, whose alternatives are known.
        before: State and session of the last step of the prefix, if known.
        observations: Identifies states by observations; without it, only the order of steps does.
    """

    def __init__(self, frontier, prescribed, before=None, observations=None):
        self._frontier = frontier
        self._prescribed = prescribed
        self._before = before
        self._guest_start = before
        self._step = None
        self._ids = None
        self._waits = False
        self._keeps_locks = frontier.keeps_locks
        self._order = Order(frontier.histories, len(frontier.sessions))
        self._observations = observations
        self._choices = []
        self._alternatives = []
        self._is_deferring = False

    def enter_moment(self, moment, chosen_session, sessions):
        """Handle a moment before its step; return False to abandon the schedule."""
        self._alternatives = []
        if moment.number < self._prescribed:
            return True
        nodes = [(self._order.state, moment.last), (self._order.state, moment.interrupted)]
        observed = None
        if self._observations is not None:
            observed = self._observations.state
            nodes.append((observed, moment.interrupted))
            ids, self._ids = self._ids, self._observations.number_of_ids
            self._frontier.record_arrival(
                self._before, Arrival(nodes[-1], self._step, ids != self._ids)
            )
            self._before = (observed, chosen_session)
            self._see_guest(moment, chosen_session, observed)
        if not self._frontier.enter(nodes, moment.spent):
            return False
        self._is_deferring = chosen_session == moment.last and not self._frontier.matters(
            chosen_session, sessions[chosen_session].footprint
        )
        if moment.last is None and self._frontier.alike:
            return True
        for able_session in moment.able:
            spent = moment.spent_by(able_session)
            if able_session != chosen_session and spent <= self._frontier.preemptions:
                session = sessions[able_session]
                state = self._order.state_after(able_session, session.next_step, session.footprint)
                before = None if observed is None else (observed, able_session)
                self._alternatives.append(
                    (spent, (*self._choices, able_session), (state, able_session), before)
                )
        return True

    def _see_guest(self, moment, chosen_session, observed):
        """Record the state in which a guest stops or waits."""
        if moment.number == 0:
            self._guest_start = (observed, chosen_session)
        elif moment.number == self._prescribed:
            self._waits = self._step.waited
        if self._guest_start is not None and chosen_session != self._guest_start[1]:
            without, guest = self._guest_start
            keeps_locks = self._keeps_locks and self._step.waited
            self._frontier.add_guest(Guest(without, guest, self._waits, keeps_locks, observed))
            self._guest_start = None

    def add_step(self, step):
        """Handle an executed step."""
        for beginning in self._alternatives:
            # The footprint of a waiting or failed statement is unknown.
            if self._is_deferring and not step.meets_all:
                self._frontier.defer(step.session, step.footprint, beginning)
            else:
                self._frontier.add(*beginning)
        self._choices.append(step.session)
        self._order.add(step.session, step.statement, step.footprint, meets_all=step.meets_all)
        if self._observations is not None:
            self._observations.add(step)
        self._step = step
        if len(self._choices) >= self._prescribed:
            has_failed = step.meets_all and not step.waited
            self._keeps_locks &= not (step.footprint.frees or has_failed)
