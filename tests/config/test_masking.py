# SPDX-License-Identifier: Apache-2.0
"""No secret of a configuration is printed, whatever characters a password has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.processes import call
from tests.servers import command_environment
from treeclaim.config.effective import database_place, without_credentials

PIECE = "Secret"
"""In each part of a password that could be shown by itself."""

PASSWORDS = st.lists(st.sampled_from("@:/?#%[]&=+, \\'\"!$é"), min_size=1, max_size=4).map(
    lambda marks: PIECE + "".join(f"{mark}{PIECE}" for mark in marks)
)
PLACE = "db.example:3306/placement"


@given(PASSWORDS)
def test_password_is_hidden_and_host_is_shown(password):
    shown = database_place(f"mysql+pymysql://user:{password}@{PLACE}?ssl_key={password}")
    assert PIECE not in shown
    shown = database_place(f"mysql+pymysql://user:{password}@{PLACE}")
    assert shown == f"mysql+pymysql://****{'' if '?' in password else f'@{PLACE}'}"
    assert PIECE not in database_place(f"postgresql:///placement?password={password}")
    if "@" not in password:
        assert PIECE not in database_place(f"postgresql://user:{password}")
    assert PIECE not in database_place(password)


def test_url_without_secret_is_shown():
    for url in (
        "sqlite:////var/lib/placement@home/placement.db",
        "postgresql://db.example/placement",
        "postgresql://db.example:5432/placement",
        "postgresql://[::1]:5432/placement",
    ):
        assert database_place(url) == url


@given(PASSWORDS.filter(lambda password: not {" ", ","} & set(password)))
def test_the_credentials_of_any_url_are_hidden(password):
    text = f"https://user:{password}@one.example/v3,https://two.example/v3"
    assert PIECE not in without_credentials(text)
    assert "two.example" in without_credentials(text)


SECRETS = {
    "OS_KEYSTONE_AUTHTOKEN__AUTH_TYPE": "password",
    "OS_KEYSTONE_AUTHTOKEN__PASSWORD": f"mysql://u:p@{PIECE}/{PIECE}",
    "OS_KEYSTONE_AUTHTOKEN__MEMCACHE_SECRET_KEY": f"redis://u:p@{PIECE}/{PIECE}",
    "OS_KEYSTONE_AUTHTOKEN__MEMCACHE_PASSWORD": f"a://{PIECE}@{PIECE}",
    "OS_KEYSTONE_AUTHTOKEN__AUTH_URL": f"https://user:{PIECE}@{PIECE}@keystone.example/v3",
    "OS_KEYSTONE_AUTHTOKEN__WWW_AUTHENTICATE_URI": f"https://u:{PIECE}@keystone.example",
    "OS_PLACEMENT_DATABASE__CONNECTION_PARAMETERS": f"user=a://{PIECE}&password={PIECE}@{PIECE}",
    "OS_PLACEMENT_DATABASE__SLAVE_CONNECTION": f"mysql://u:{PIECE}@{PIECE}@db/x?password={PIECE}",
    "OS_DEFAULT__TRANSPORT_URL": f"rabbit://openstack:{PIECE}@{PIECE}@controller:5672/",
}


@pytest.mark.parametrize(
    "password",
    [
        f"{PIECE}@{PIECE}",
        f"{PIECE}@{PIECE}/{PIECE}",
        f"{PIECE}@{PIECE}:{PIECE}",
        f"{PIECE}#{PIECE}",
    ],
)
@pytest.mark.parametrize("command", [["config", "check", "--all"], ["db", "version"]])
def test_no_command_prints_a_secret(tmp_path, password, command):
    url = f"postgresql+psycopg://user:{password}@127.0.0.1:1/placement"
    environment = command_environment(tmp_path, url, **SECRETS)
    result = call(environment, *command)
    assert PIECE not in result.stdout + result.stderr
    assert result.stdout + result.stderr
