"""The command `completion`: prints what lets a shell complete cardbeat's commands, options and files.

All of it is taken from the parsers of the commands. What an option or an argument takes is told by how `--help` names
it: FILE and DIR are paths, and `open|closed` are the two words that there are.
"""

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cardbeat.commands import backup, card, checks, doctor, keys, restore, serve
from cardbeat.options import Parser, SubcommandParser
from cardbeat.output import say

FILES, FOLDERS = "files", "folders"
PROGRAMS = "cardbeat cardbeat.pyz"
"""By which names shells know the program: as it is installed, and as the artifact that is run by its path."""

_EPILOG = """\
bash, in ~/.bashrc:                       eval "$(cardbeat completion bash)"
zsh, in ~/.zshrc and behind its compinit: source <(cardbeat completion zsh)
It completes behind cardbeat, and behind cardbeat.pyz where that is run itself.
"""


def parser() -> Parser:
    made = Parser("completion bash|zsh", "Print what completes the commands and options in a shell.", _EPILOG)
    made.add_argument("shell", choices=_SCRIPTS, metavar="bash|zsh", help="the shell that is to read it")
    return made


def run(argv: Sequence[str]) -> int:
    say([_SCRIPTS[parser().parse_args(list(argv)).shell]()])
    return 0


PARSERS: dict[str, Callable[[], Parser]] = {
    "serve": serve.parser,
    "card": card.parser,
    "keys": keys.parser,
    "checks": checks.parser,
    "backup": backup.parser,
    "restore": restore.parser,
    "doctor": doctor.parser,
    "completion": parser,
}

Kind = tuple[str, ...]
"""What may stand somewhere: one of some words, `(FILES,)`, `(FOLDERS,)`, or anything where it is empty."""


@dataclass(frozen=True)
class Place:
    """Where words are completed: behind a command, or behind a command and its action, such as `keys create`.

    With each option stands what its value may be, or None where it takes none; with each argument how it is called.
    """

    name: str
    about: str
    options: dict[str, tuple[argparse.Action, Kind | None]]
    arguments: list[tuple[str, Kind]]


def places() -> Iterator[Place]:
    for command, make in PARSERS.items():
        made = make()
        about = (made.description or "").splitlines()[0].rstrip(".")
        yield Place(command, about, _options(made.actions), _arguments(made))
        if isinstance(made, SubcommandParser):
            for name, subcommand in made.subcommands.items():
                taken = [action for action in made.actions if made.takes(name, action)]
                arguments = [(metavar, _kind(metavar)) for metavar in subcommand.arguments]
                yield Place(f"{command} {name}", "", _options(taken), arguments)


def _options(actions: Sequence[argparse.Action]) -> dict[str, tuple[argparse.Action, Kind | None]]:
    return {
        flag: (action, None if action.nargs == 0 else _kind(str(action.metavar)))
        for action in actions
        for flag in action.option_strings
    }


def _arguments(made: Parser) -> list[tuple[str, Kind]]:
    if isinstance(made, SubcommandParser):
        return [("ACTION", tuple(made.subcommands))]
    return [(str(it.metavar), _kind(str(it.metavar))) for it in made.actions if not it.option_strings]


def _kind(metavar: str) -> Kind:
    return {"FILE": (FILES,), "DIR": (FOLDERS,)}.get(metavar, tuple(metavar.split("|")) if "|" in metavar else ())


_BASH = """\
# Lets bash complete what cardbeat takes: eval "$(cardbeat completion bash)"
_cardbeat() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} place=serve option= number=0 offered= at one
    for ((at = 1; at < COMP_CWORD; at++)); do
        one=${{COMP_WORDS[at]}}
        # To bash --port=80 is three words, and so is localhost:80.
        if [[ $one == = ]]; then continue; fi
        if [[ $one && ! ${{one//:}} ]]; then option=; at=$((at + 1)); continue; fi
        if [[ $option ]]; then option=; continue; fi
        case $at:$place:$one in {commands}) place=$one; continue ;; esac
        case $place:$one in
            {subcommands}) place="$place $one" ;;
            {with_value}) option=$one ;;
            *:-*) ;;
            *) number=$((number + 1)) ;;
        esac
    done
    # The word belongs to what stands before a colon.
    if ((at > COMP_CWORD)); then COMPREPLY=(); return; fi
    if [[ $word == = ]]; then word=; fi
    case $place:${{option:-$number}} in
        {offers}
    esac
    if [[ -z $option && $word == -* ]]; then
        case $place in
            {options}
        esac
    elif [[ $COMP_CWORD == 1 ]]; then
        offered="{words}"
    fi
    COMPREPLY=()
    case $offered in
        files) compopt -o default 2>/dev/null || {{ local IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$word")); }} ;;
        folders) compopt -o dirnames 2>/dev/null || {{ local IFS=$'\\n'; COMPREPLY=($(compgen -d -- "$word")); }} ;;
        *) COMPREPLY=($(compgen -W "$offered" -- "$word")) ;;
    esac
}}
complete -F _cardbeat {programs}"""

_ZSH = """\
#compdef {programs}
# Lets zsh complete what cardbeat takes: source <(cardbeat completion zsh)
_cardbeat() {{
    local place=serve
    local -a commands=(
        {described}
    )
    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
        _describe command commands
        return
    fi
    if (( CURRENT > 2 )); then
        case $words[2] in {words}) place=$words[2]; shift words; (( CURRENT-- )) ;; esac
    fi
    if (( CURRENT > 2 )); then
        case $place:$words[2] in {subcommands}) place="$place $words[2]"; shift words; (( CURRENT-- )) ;; esac
    fi
    case $place in
        {specs}
    esac
}}
if [[ $funcstack[1] == _cardbeat ]]; then _cardbeat "$@"; else compdef _cardbeat {programs}; fi"""


def _bash() -> str:
    found = list(places())
    kinds = [(f"{place.name}:{flag}", kind) for place in found for flag, (_, kind) in place.options.items()]
    offers = [(f"{place.name}:{n}", kind) for place in found for n, (_, kind) in enumerate(place.arguments)]
    offers += [(where, kind) for where, kind in kinds if kind is not None]
    return _BASH.format(
        commands=_patterns(f"1:serve:{command}" for command in PARSERS),
        subcommands=_patterns(_subcommands(found)),
        with_value=_patterns(where for where, kind in kinds if kind is not None),
        offers=_lines(8, (f"{_pattern(where)}) offered={_quoted(kind)} ;;" for where, kind in offers if kind)),
        options=_lines(12, (f"{_pattern(it.name)}) offered={_quoted(it.options)} ;;" for it in found)),
        words=" ".join(PARSERS),
        programs=PROGRAMS,
    )


def _zsh() -> str:
    found = list(places())
    return _ZSH.format(
        described=_lines(8, (shlex.quote(f"{it.name}:{it.about}") for it in found if it.name in PARSERS)),
        words="|".join(PARSERS),
        subcommands=_patterns(_subcommands(found)),
        specs=_lines(8, (f"{_pattern(it.name)}) _arguments {' '.join(_specs(it))} ;;" for it in found)),
        programs=PROGRAMS,
    )


def _subcommands(found: Iterable[Place]) -> Iterator[str]:
    return (place.name.replace(" ", ":") for place in found if " " in place.name)


def _pattern(text: str) -> str:
    return text.replace(" ", "\\ ")


def _patterns(texts: Iterable[str]) -> str:
    return "|".join(map(_pattern, texts))


def _lines(indent: int, lines: Iterable[str]) -> str:
    return ("\n" + " " * indent).join(lines)


def _quoted(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


def _specs(place: Place) -> Iterator[str]:
    """What `_arguments` of zsh is told of a place: each option, then each argument."""
    for flag, (action, kind) in place.options.items():
        yield shlex.quote(_option_spec(flag, action, kind))
    for number, (metavar, kind) in enumerate(place.arguments, 1):
        yield shlex.quote(f"{number}:{metavar}:{_zsh_action(kind)}")


def _option_spec(flag: str, action: argparse.Action, kind: Kind | None) -> str:
    about = re.sub(r"[\[\]\\:]", r"\\\g<0>", (action.help or "").replace("%%", "%"))
    if kind is not None:
        # An option that can be repeated adds to what was given before.
        repeated = "*" if isinstance(action, argparse._ExtendAction) else ""
        return f"{repeated}{flag}=[{about}]:{action.metavar}:{_zsh_action(kind)}"
    return f"(- *){flag}[show the {action.dest}]" if action.dest in ("help", "version") else f"{flag}[{about}]"


def _zsh_action(kind: Kind) -> str:
    return {(FILES,): "_files", (FOLDERS,): "_path_files -/", (): " "}.get(kind, f"({' '.join(kind)})")


_SCRIPTS = {"bash": _bash, "zsh": _zsh}
