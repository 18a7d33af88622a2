# SPDX-License-Identifier: Apache-2.0
"""Policy rules while the operator's files change, become invalid and are repaired."""

import os
import time

import pytest

from tests.api.raw import send
from tests.service import make_application
from treeclaim.api.protocol.callers import make_policy_credentials, read_identity
from treeclaim.model.errors import PolicyFileError

pytestmark = pytest.mark.usefixtures("checking_at_once")

LIST = "placement:resource_providers:list"


@pytest.fixture
def path(tmp_path):
    """The path of the policy file."""
    return tmp_path / "policy.yaml"


def write(path, text):
    """Write a file with a new modification time, also on a file system with coarse times."""
    path.write_text(text)
    stamp = time.time_ns() + len(text) * 1_000_000
    os.utime(path, ns=(stamp, stamp))


def serve(path, **overrides):
    """Return a service that reads the file."""
    names = {"oslo_policy.policy_file": path, "oslo_policy.policy_dirs": path.parent / "policy.d"}
    return make_application(path.parent, **(names | overrides))


def status(application, path="/resource_providers", roles="nobody", **headers):
    """Return the status of a response to a caller with roles."""
    return send(application, "GET", path, http_x_roles=roles, **headers).status


def logged(caplog, words):
    """Return the log messages with a phrase."""
    messages = (record.getMessage() for record in caplog.records)
    return [message for message in messages if words in message]


def test_changed_policy_file_applies_to_earlier_callers(path):
    """Cached decisions by the old rules are discarded."""
    application = serve(path)
    assert status(application) == 403
    write(path, f'"{LIST}": "@"\n')
    assert status(application) == 200
    write(path, f'"{LIST}": "!"\n')
    assert status(application) == 403
    assert status(application, roles="admin") == 403
    path.unlink()
    assert status(application, roles="admin") == 200
    assert status(application) == 403


def test_file_in_policy_folder_overrides_the_main_file(path):
    application = serve(path)
    write(path, f'"{LIST}": "role:a"\n')
    folder = path.parent / "policy.d"
    folder.mkdir()
    write(folder / "more.yaml", f'"{LIST}": "role:b"\n')
    assert status(application, roles="a") == 403
    assert status(application, roles="b") == 200
    write(folder / "more.yaml", f'"{LIST}": "role:other"\n')
    assert status(application, roles="b") == 403
    assert status(application, roles="other") == 200


BROKEN = {
    "no YAML": "a: b\n'placement:usages': [\n",
    "a tab": "a: b\n\tb: c\n",
    "no names": "- a\n",
    "only a text": "text\n",
    "a number": f'\n"{LIST}": 5\n',
    "no form": f'"{LIST}": "project_id:%(project_id"\n',
    "a cycle": f'"a": "rule:b"\n"b": "rule:a"\n"{LIST}": "rule:a"\n',
    "no UTF-8": "\xff\xfe\0",
}
DOUBTFUL = {
    "a misspelt operator": f'"{LIST}": "role:admin andd role:x"\n',
    "an open bracket": f'"{LIST}": "(role:admin"\n',
    "no kind": f'"{LIST}": "admin"\n',
    "no kind beside never": f'"{LIST}": "! or admin"\n',
    "a rule with parts": f'"{LIST}":\n  x: y\n',
    "an undefined rule": f'\n\n"{LIST}": "not rule:nobody_knows"\n',
}


def write_bytes(path, text):
    """Write a file that may not be UTF-8."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_file_is_named_and_refused_at_start(path, kind):
    write_bytes(path, BROKEN[kind])
    with pytest.raises(PolicyFileError, match="cycle" if kind == "a cycle" else str(path)):
        serve(path)


@pytest.mark.parametrize("kind", DOUBTFUL)
def test_doubtful_rule_is_reported_at_start(path, kind, caplog):
    text = DOUBTFUL[kind]
    path.write_text(text + '"placement:traits:list": "role:good"\n')
    application = serve(path)
    (message,) = logged(caplog, "In the policy files")
    assert f": {LIST} " in message
    # An undefined rule is false, so that `not` makes it true, as for oslo.policy.
    allowed = 200 if "not rule" in text else 403
    assert status(application, roles="admin") == allowed
    assert status(application, "/traits", roles="good") == 200


@pytest.mark.parametrize("kind", BROKEN | DOUBTFUL)
def test_last_valid_rules_apply_while_a_file_is_broken(path, kind, caplog):
    write(path, f'"{LIST}": "role:good"\n')
    application = serve(path)
    assert status(application, roles="good") == 200
    write_bytes(path, (BROKEN | DOUBTFUL)[kind])
    os.utime(path, ns=(1, 1))
    for _ in range(5):
        assert status(application, roles="good") == 200
        assert status(application, roles="admin") == 403
    assert len(logged(caplog, "last valid rules")) == 1, "once, not with each check"
    write(path, f'"{LIST}": "role:better"\n')
    assert status(application, roles="good") == 403
    assert status(application, roles="better") == 200


def test_broken_folder_file_blocks_changes_of_all_files(path):
    """All files together are one state: half of a change never applies."""
    write(path, f'"{LIST}": "role:good"\n')
    application = serve(path)
    folder = path.parent / "policy.d"
    folder.mkdir()
    (folder / "more.yaml").write_text("[")
    write(path, f'"{LIST}": "@"\n')
    assert status(application, roles="x") == 403
    assert status(application, roles="good") == 200


def test_unused_rule_is_reported(path, caplog):
    write(path, '"own": "role:x"\n"placement:usages": "rule:own"\n"placement:usage": "!"\n')
    serve(path)
    (message,) = logged(caplog, "No operation uses")
    assert " placement:usage " in message


def test_credentials_have_the_keys_of_oslo_context():
    from oslo_context.context import RequestContext

    credentials = make_policy_credentials(read_identity({"HTTP_X_USER_ID": "u"}).values)
    assert set(credentials) == set(RequestContext(overwrite=False).to_policy_values())
    assert credentials["is_admin_project"] is True


def test_missing_authentication_is_logged(tmp_path, caplog):
    make_application(tmp_path)
    assert logged(caplog, "noauth2")
