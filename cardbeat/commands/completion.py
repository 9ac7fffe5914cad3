"""The command `completion`: prints a script with which bash or zsh completes commands, options and files.

The script's table comes from the commands' parsers. Where `--help` says FILE or DIR it offers paths, and where it says
`open|closed` these two words.
"""

import argparse
import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from cardbeat.commands import backup, card, cards, checks, doctor, import_, keys, restore, serve
from cardbeat.commands.options import Parser, SubcommandParser
from cardbeat.host.output import say

_EPILOG = """\
bash, in ~/.bashrc:               eval "$(cardbeat completion bash)"
zsh, in ~/.zshrc, after compinit: source <(cardbeat completion zsh)
It works for cardbeat, and for cardbeat.pyz without python before it.
"""

_SCRIPT = """\
# Completes commands, options and files of cardbeat.
_cardbeat() {{
    local place= option= number=0 offered= one word; local -a before; {words}
    for one in "${{before[@]}}"; do
        if [[ -z $place && $one == -* ]]; then place=/serve; fi
        if [[ -n $option ]]; then option=; continue; fi
        case $place:$one in
            {steps}) place=$place/$one number=0 ;;
            {with_value}) option=$one ;;
            *:-*) ;;
            *) number=$((number + 1)) ;;
        esac
    done
    if [[ -z $place && $word == -* ]]; then place=/serve; fi
    if [[ -z $option && $word == --*=* ]]; then option=${{word%%=*}} word=${{word#*=}}
    elif [[ -z $option && $word == -* ]]; then option=-; fi
    case $place:${{option:-$number}} in
        {table}
    esac
    case $offered in FILE|SOURCE) {files} ;; DIR) {folders} ;; *) {listed} ;; esac
}}
if [[ ${{ZSH_VERSION-}} ]]; then compdef _cardbeat cardbeat cardbeat.pyz
else complete -F _cardbeat cardbeat cardbeat.pyz; fi"""
_SHELLS = {
    "bash": {
        "words": 'read -a before <<< "${COMP_LINE:0:COMP_POINT}x"; word=${before[${#before[@]} - 1]%x}; '
        'before=("${before[@]:1:${#before[@]} - 2}"); COMPREPLY=()',
        "files": "compopt -o default 2>/dev/null || { local IFS=$'\\n'; COMPREPLY=($(compgen -f -- \"$word\")); }",
        "folders": "compopt -o dirnames 2>/dev/null || { local IFS=$'\\n'; COMPREPLY=($(compgen -d -- \"$word\")); }",
        "listed": 'COMPREPLY=($(compgen -W "$offered" -- "$word"))',
    },
    "zsh": {
        "words": 'before=("${(@Q)words[2,CURRENT-1]}"); word=$PREFIX; compset -P "--*="',
        "files": "_files",
        "folders": "_path_files -/",
        "listed": "compadd -- ${=offered}",
    },
}


def parser() -> Parser:
    made = Parser("completion bash|zsh", "Print a script that completes commands and options in a shell.", _EPILOG)
    made.add_argument("shell", choices=_SHELLS, metavar="bash|zsh", help="the shell to print it for")
    return made


PARSERS: dict[str, Callable[[], Parser]] = {
    module.__name__.rpartition(".")[2].rstrip("_"): module.parser
    for module in (serve, card, cards, keys, checks, import_, backup, restore, doctor)
} | {"completion": parser}


def run(argv: Sequence[str]) -> int:
    shell, offers = _SHELLS[parser().parse_args(list(argv)).shell], dict(_offers())
    table = "\n        ".join(f"{where}) offered={shlex.quote(what)} ;;" for where, what in offers.items() if what)
    steps = "|".join(":".join(where[:-2].rsplit("/", 1)) for where in offers if where.endswith(":-"))
    with_value = "|".join(where for where in offers if ":--" in where)
    say(_SCRIPT.format(**shell, table=table, steps=steps, with_value=with_value).splitlines())
    return 0


def _offers() -> Iterator[tuple[str, str]]:
    """What is offered where: at `/card:-` the options, at `/card:--theme` its values, at `/keys/tier:1` an argument."""
    yield ":0", " ".join(PARSERS)
    for place, arguments, actions in _places():
        flags = {flag: action for action in actions for flag in action.option_strings}
        yield f"{place}:-", " ".join(flags)
        slots = {flag: str(action.metavar) for flag, action in flags.items() if action.nargs != 0}
        for slot, metavar in (slots | dict(zip("0123", arguments, strict=False))).items():
            yield f"{place}:{slot}", metavar.replace("|", " ") if re.search(r"\||^(FILE|DIR|SOURCE)$", metavar) else ""


def _places() -> Iterator[tuple[str, Sequence[str], Sequence[argparse.Action]]]:
    for command, made in ((name, make()) for name, make in PARSERS.items()):
        arguments = ["|".join(it.choices or [str(it.metavar)]) for it in made.actions if not it.option_strings]
        yield f"/{command}", arguments, made.actions
        if isinstance(made, SubcommandParser):
            for name, taken in made.subcommands.items():
                yield f"/{command}/{name}", taken.arguments, [it for it in made.actions if made.takes(name, it)]
