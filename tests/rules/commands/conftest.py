"""Runs a command in this process, in the folder of the test."""

import os

import pytest

from cardbeat.cli import main


class Ran:
    """What a command did."""

    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err

    def refused(self):
        """The one line that it printed in place of doing anything."""
        assert (self.status, self.out, self.err.count("\n")) == (2, "", 1), (
            self.err
        )
        return self.err.removeprefix("cardbeat: ").rstrip("\n")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("CARDBEAT_", "STATE_DIRECTORY")):
            monkeypatch.delenv(name)

    def run_command(*argv):
        capsys.readouterr()
        status = main([str(word) for word in argv])
        return Ran(status, *capsys.readouterr())

    return run_command
