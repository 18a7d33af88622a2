# SPDX-License-Identifier: Apache-2.0
"""Authentication by HTTP Basic (contract page 05, section 1.3)."""

import logging
from base64 import b64encode
from contextlib import contextmanager

import bcrypt
import pytest
from keystoneauth1 import adapter, loading, session
from keystoneauth1.exceptions import Unauthorized

from tests.cli.processes import call
from tests.server.fronts import running
from tests.service import client_of, make_application
from treeclaim.api.middleware.authentication import read_password_file
from treeclaim.config import ConfigurationError

pytestmark = pytest.mark.usefixtures("checking_at_once")

READ = "/resource_providers"


def line(user, password):
    return f"{user}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()}\n"


@pytest.fixture
def users(tmp_path):
    """The password file, with the user alice."""
    path = tmp_path / "users"
    path.write_text("# users of the service\n\n" + line("alice", "secret: word"))
    return path


def application(folder, users):
    """The service behind the file."""
    return make_application(
        folder,
        **{"api.auth_strategy": "http_basic", "api.http_basic_auth_user_file": str(users)},
    )


@pytest.fixture
def http(tmp_path, users):
    """A client without credentials."""
    with client_of(application(tmp_path, users)) as client:
        del client.headers["x-auth-token"]
        yield client


@contextmanager
def served(folder, users):
    """The service at a port; yields its URL."""
    with running(application(folder, users), 4) as server:
        yield "http://{}:{}".format(*server.address)


def basic(text):
    """A header with credentials."""
    return {"authorization": f"Basic {b64encode(text.encode()).decode()}"}


def test_password_file_is_reread_when_it_changes(http, users):
    first, second = basic("alice:secret: word"), basic("bob:other")
    assert http.get(READ, headers=first).status_code == 200
    assert http.get(READ, headers=second).status_code == 401
    users.write_text(line("bob", "other"))
    assert http.get(READ, headers=first).status_code == 401
    assert http.get(READ, headers=second).status_code == 200


BROKEN = {
    "other kind of hash": ("bob:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n", "line 1: USER:HASH"),
    "cut hash": ("\n# users\nalice:$2y$05$abc\n", "line 3: USER:HASH"),
    "no user": ("# nobody\n", "has no user"),
    "no text": ("\xff", "cannot be read"),
    "missing": (None, "cannot be read"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_last_good_users_stay_while_the_file_is_broken(http, users, kind, caplog):
    headers = basic("alice:secret: word")
    text, reason = BROKEN[kind]
    if text is None:
        users.unlink()
    else:
        users.write_text(text, encoding="latin-1")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert http.get(READ, headers=headers).status_code == 200
            assert http.get(READ, headers=basic("bob:other")).status_code == 401
    warnings = [record for record in caplog.records if "last valid users" in record.getMessage()]
    assert len(warnings) == 1
    assert reason in warnings[0].getMessage()
    users.write_text(line("bob", "other"))
    assert http.get(READ, headers=headers).status_code == 401
    assert http.get(READ, headers=basic("bob:other")).status_code == 200


@pytest.mark.parametrize("kind", BROKEN)
def test_service_does_not_start_with_a_broken_file(tmp_path, kind):
    path = tmp_path / "broken"
    text, reason = BROKEN[kind]
    if text is not None:
        path.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigurationError, match=reason):
        read_password_file(str(path))


def test_service_does_not_start_without_a_file(tmp_path):
    with pytest.raises(ConfigurationError, match="is not set"):
        application(tmp_path, "")


@pytest.mark.slow
def test_keystoneauth_authenticates(tmp_path, users):
    with served(tmp_path, users) as url:
        loader = loading.get_plugin_loader("http_basic")
        for password in ("secret: word", "wrong"):
            plugin = loader.load_from_options(endpoint=url, username="alice", password=password)
            client = adapter.Adapter(session.Session(auth=plugin), service_type="placement")
            if password == "wrong":
                with pytest.raises(Unauthorized):
                    client.get(READ)
            else:
                assert client.get(READ).json() == {"resource_providers": []}


@pytest.mark.slow
def test_command_line_authenticates(tmp_path, users):
    with served(tmp_path, users) as url:
        variables = {"OS_AUTH_TYPE": "http_basic", "OS_ENDPOINT": url, "OS_USERNAME": "alice"}
        right = call(variables | {"OS_PASSWORD": "secret: word"}, "tree")
        assert (right.returncode, right.stderr) == (0, "")
        assert call(variables | {"OS_PASSWORD": "wrong"}, "tree").returncode != 0
