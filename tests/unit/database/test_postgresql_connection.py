"""What a session of PostgreSQL is set to."""

import contextlib

import pytest

from cardbeat.database.postgresql.connection import connect


def test_a_session_that_ended_with_the_server_is_not_taken_for_idle(postgresql):
    with contextlib.closing(connect(postgresql.url())) as connection:
        assert connection.is_idle()
        postgresql.stop("immediate")
        try:
            assert not connection.is_idle()
        finally:
            postgresql.start()


@pytest.mark.parametrize("only_reads", [False, True])
def test_the_server_lets_go_of_a_session_whose_host_is_gone_as_soon_as_the_host_would(postgresql, only_reads):
    url = postgresql.url(host="127.0.0.1")
    with contextlib.closing(connect(url, only_reads=only_reads)) as connection:
        shown = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name LIKE 'tcp_%' ORDER BY name"
        ).fetchall()
    assert dict(map(tuple, shown)) == {
        "tcp_keepalives_count": "3",
        "tcp_keepalives_idle": "5",
        "tcp_keepalives_interval": "3",
        "tcp_user_timeout": "15000",
    }
