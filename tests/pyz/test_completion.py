"""Completion, by what the two shells offer at a terminal once they have read what the artifact prints for them."""

import os
import re
import select
import struct
import subprocess

import pytest

from cardbeat import cli
from cardbeat.commands import completion
from tests.artifact import clean_environment

fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

SHELLS = {
    "bash": ["bash", "--noprofile", "--norc", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
BEFORE = {
    "bash": "bind 'set show-all-if-ambiguous on' 'set enable-bracketed-paste off' 'set completion-query-items 0'",
    "zsh": "autoload -Uz compinit; compinit -u -d compdump; unset zle_bracketed_paste; unsetopt prompt_sp",
}
PROMPT = "@> "
KILL_LINE, TAB = "\x15", "\t"


class Shell:
    """A shell at a terminal of 200 columns, in which `cardbeat` is completed."""

    def __init__(self, name, script, folder):
        self.terminal, own = pty.openpty()
        fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 100, 200, 0, 0))
        environment = {**clean_environment(), "TERM": "dumb", "PS1": PROMPT, "LC_ALL": "C.UTF-8", "HOME": str(folder)}
        self.process = subprocess.Popen(
            SHELLS[name], stdin=own, stdout=own, stderr=own, cwd=folder, env=environment, start_new_session=True
        )
        os.close(own)
        self.said = 0
        self.after(f"{BEFORE[name]}\n. {script}\n")

    def shows(self, keys, end):
        """What the terminal shows of these keys, up to some text that it ends with."""
        os.write(self.terminal, keys.encode())
        shown = ""
        while not shown.endswith(end):
            assert select.select([self.terminal], [], [], 60)[0], shown
            shown += os.read(self.terminal, 65536).decode()
            shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07\r]", "", shown)
        return shown

    def after(self, keys):
        """What is shown of these keys and of what they run, until the prompt stands there again."""
        self.said += 1
        return self.shows(f"{keys}{KILL_LINE}echo said-$(({self.said}+0))-\n", f"said-{self.said}-\n{PROMPT}")

    def offers(self, line):
        """The words that are listed for the end of a line, which then stands there again.

        Only then is more typed: zsh lists nothing for somebody who types on.
        """
        listed = self.shows(line + TAB, f"\n{PROMPT}{line}").removesuffix(f"{PROMPT}{line}").removeprefix(line)
        self.after("")
        return {word for one in listed.splitlines() for word in one.partition(" -- ")[0].split()}

    def completes(self, line):
        """The line as it is once its one possible end was added; zsh takes the slash back that no name follows."""
        shown = self.after(f"{line}{TAB}\x01echo = \n")
        return re.search("^= (.*)$", shown, re.MULTILINE)[1].rstrip("/ ")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, python, pyz, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "my checks.toml").write_text("")
    (folder / "data").mkdir()
    with (folder / "script").open("wb") as script:
        subprocess.run([python, pyz, "completion", request.param], stdout=script, check=True)
    shell = Shell(request.param, "./script", folder)
    yield shell
    shell.close()


def test_every_command_is_offered(shell):
    assert shell.offers("cardbeat ") == set(cli.COMMANDS)
    assert set(completion.PARSERS) == set(cli.COMMANDS)


def test_the_artifact_is_completed_by_its_path(shell):
    assert shell.completes("./cardbeat.pyz doc") == "./cardbeat.pyz doctor"


def test_options_are_those_of_the_command_and_its_action(shell):
    assert {"--port", "--quiet-health", "--version"} <= shell.offers("cardbeat --")
    assert shell.offers("cardbeat checks apply --") == {"--help", "--prune", "--yes", "--dry-run", "--json", "--url"}
    assert shell.offers("cardbeat checks test --") == {"--help", "--wait", "--json", "--url"}
    assert shell.offers("cardbeat checks list --") == {"--help", "--json", "--url"}
    assert shell.offers("cardbeat keys --data x list --") >= {"--json", "--tiers"}


def test_what_an_option_or_argument_takes_is_offered(shell):
    assert shell.offers("cardbeat keys ") == {"list", "create", "replace", "revoke", "tier", "prune"}
    assert shell.offers("cardbeat --registration ") == {"open", "closed"}
    assert shell.completes("cardbeat --registration=o") == "cardbeat --registration=open"
    assert shell.offers("cardbeat card --template ") == {"default", "blog", "article"}
    assert shell.offers("cardbeat completion ") == {"bash", "zsh"}


def test_files_are_offered_where_a_file_is_taken_and_folders_where_a_folder_is(shell):
    assert shell.completes("cardbeat checks apply m") == "cardbeat checks apply my checks.toml"
    assert shell.completes("cardbeat checks apply --prune m") == "cardbeat checks apply --prune my checks.toml"
    assert shell.completes("cardbeat backup --data d") == "cardbeat backup --data data"
    assert shell.completes("cardbeat backup --data=d") == "cardbeat backup --data=data"
    assert shell.completes("cardbeat --data m") == "cardbeat --data m"
    assert shell.completes("cardbeat checks ping m") == "cardbeat checks ping m"


def test_what_stands_behind_a_url_is_completed_and_the_url_is_not(shell):
    assert shell.completes("cardbeat checks --url http://x:1/ app") == "cardbeat checks --url http://x:1/ apply"
    assert shell.completes("cardbeat checks --url=http://x:1/ app") == "cardbeat checks --url=http://x:1/ apply"
    assert shell.completes("cardbeat checks --url http://x:l") == "cardbeat checks --url http://x:l"


def test_what_stands_before_the_command_does_not_count(shell):
    assert shell.offers("true | A=1 cardbeat keys ") == {"list", "create", "replace", "revoke", "tier", "prune"}
    assert shell.offers("true; cardbeat keys --data x ") == {"list", "create", "replace", "revoke", "tier", "prune"}


def test_a_word_in_quotes_or_with_escaped_spaces_is_one(shell):
    assert shell.completes(r"cardbeat --data my\ data --registration o") == (
        "cardbeat --data my data --registration open"
    )
    assert shell.completes("cardbeat card --title 'a' --theme d") == "cardbeat card --title a --theme dark"
