from cardbeat import patience as module
from tests.support import wait_until


def test_only_who_waits_long_is_told_what_for(capsys, monkeypatch):
    with module.patience("copying"):
        pass
    monkeypatch.setattr(module, "QUIET_SECONDS", 0)
    seen = []
    with module.patience("checking"):
        wait_until(lambda: seen.append(capsys.readouterr().err) or any(seen))
    assert "".join(seen) == "checking, please wait ...\n"
