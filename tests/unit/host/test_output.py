from cardbeat.host.output import tell_if_slow
from tests.support import wait_until


def test_only_who_waits_long_is_told_what_for(capsys):
    with tell_if_slow("copying"):
        pass
    seen = []
    with tell_if_slow("checking"):
        wait_until(lambda: seen.append(capsys.readouterr().err) or any(seen))
    assert "".join(seen) == "cardbeat: checking, please wait ...\n"
