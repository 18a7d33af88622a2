# SPDX-License-Identifier: Apache-2.0
"""Decisions are remembered until the files change, and not beyond."""

from types import SimpleNamespace

import pytest
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from treeclaim.api.protocol import policy as policies
from treeclaim.api.protocol.callers import identity_of
from treeclaim.model.errors import PolicyFileError

RULE = "placement:traits:list"
SOMEBODY = identity_of({"HTTP_X_USER_ID": "u", "HTTP_X_PROJECT_ID": "p", "HTTP_X_ROLES": "member"})


class CountingEnforcer(oslo_policy.Enforcer):
    """An enforcer that counts what it is asked."""

    asked = 0

    def authorize(self, *arguments, **named):
        self.asked += 1
        return super().authorize(*arguments, **named)


class Files:
    """Policy files as `Policy` sees them: a state, and rules that may be broken."""

    def __init__(self, check):
        self.check = check
        self.state = 0
        self.loaded = 0

    def change(self, check):
        self.check = check
        self.state += 1

    def load(self):
        self.loaded += 1
        if self.check is None:
            raise PolicyFileError("broken")
        configuration = cfg.ConfigOpts()
        configuration([], project="placement", default_config_files=[])
        self.enforcer = enforcer = CountingEnforcer(configuration, use_conf=False)
        enforcer.register_default(oslo_policy.RuleDefault(RULE, self.check))
        enforcer.set_rules(oslo_policy.Rules.from_dict({RULE: self.check}), use_conf=False)
        return enforcer


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves; returns its only cell."""
    now = [1_000.0]
    monkeypatch.setattr(policies, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def allowed(policy, **target):
    """The results of two equal checks, of which the second is remembered."""
    first, second = (policy.allows(RULE, SOMEBODY, target) for _ in range(2))
    assert first is second
    return first


def test_changed_files_invalidate_cached_decisions(clock):
    files = Files("@")
    policy = policies.Policy(files.load, lambda: files.state)
    assert allowed(policy)
    for check, expected in (("!", False), ("role:member", True), ("not role:member", False)):
        files.change(check)
        clock[0] += policies._LOOK_EVERY
        assert allowed(policy) is expected


def test_file_change_is_detected_only_after_the_check_interval(clock):
    files = Files("@")
    policy = policies.Policy(files.load, lambda: files.state)
    files.change("!")
    clock[0] += policies._LOOK_EVERY / 2
    assert allowed(policy)
    clock[0] += policies._LOOK_EVERY / 2
    assert not allowed(policy)


def test_broken_files_leave_the_last_good_decisions(clock):
    files = Files("role:member")
    policy = policies.Policy(files.load, lambda: files.state)
    files.change(None)
    clock[0] += policies._LOOK_EVERY
    assert allowed(policy)
    files.change("!")
    clock[0] += policies._LOOK_EVERY
    assert not allowed(policy)


def test_decisions_are_cached_by_target(clock):
    files = Files("project_id:%(project_id)s")
    policy = policies.Policy(files.load, lambda: files.state)
    assert allowed(policy, project_id="p")
    assert not allowed(policy, project_id="q")
    assert not allowed(policy, project_id=None)


def test_decision_for_an_overlong_target_is_not_cached(clock):
    files = Files("@")
    policy = policies.Policy(files.load, lambda: files.state)
    target = "p" * (policies._LONGEST_REMEMBERED + 1)
    assert allowed(policy, project_id=target)
    assert files.enforcer.asked == 2
