"""Runs a command in this process, in the folder of the test."""

import os
import subprocess
import sys

import pytest

from cardbeat.cli import main
from tests.kit.artifact import ROOT, clean_environment


def in_a_process(folder, *argv, code="", variables=(), **options):
    """A command as a process of its own, after some code."""
    start = f"import sys\nfrom cardbeat import cli, service\n{code}\nsys.exit(cli.main(sys.argv[1:]))"
    environment = clean_environment(PYTHONPATH=str(ROOT)) | dict(
        variables
    )
    pipe = subprocess.PIPE
    options = {"stdout": pipe, "stderr": pipe, "text": True} | options
    command = [sys.executable, "-B", "-c", start, *argv]
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, **options
    )


class Ran:
    """What a command did."""

    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err

    def refused(self):
        """The one line that it printed in place of doing anything."""
        assert (self.status, self.out, self.err.count("\n")) == (
            2,
            "",
            1,
        ), self.err
        return self.err.removeprefix("cardbeat: ").rstrip("\n")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("CARDBEAT_", "STATE_DIRECTORY")):
            monkeypatch.delenv(name)

    def run_command(*argv):
        capsys.readouterr()
        status = main([*map(str, argv)])
        return Ran(status, *capsys.readouterr())

    return run_command
