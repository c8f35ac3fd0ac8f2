"""Shell completion, written from the parser itself, so that it cannot fall behind.

eval "$(client/run.py --print-completion bash)"
"""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path


def suggest(action: argparse.Action, words: Sequence[str]) -> None:
    """What to offer for an option that also takes other words."""
    action.suggested = words  # type: ignore[attr-defined]


def _offered(action: argparse.Action) -> Sequence[str]:
    words = getattr(action, "suggested", ()) if action.choices is None else action.choices
    return [str(word) for word in words]


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    return SHELLS[shell](parser)


def _bash(parser: argparse.ArgumentParser) -> str:
    cases = []
    for action in parser._actions:
        if action.nargs == 0 or not action.option_strings:
            continue
        names = "|".join(action.option_strings)
        if action.type is Path:
            done = 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word")'
        elif offered := _offered(action):
            done = f'mapfile -t COMPREPLY < <(compgen -W "{" ".join(offered)}" -- "$word")'
        else:
            done = "COMPREPLY=()"
        cases.append(f"        {names}) {done}; return ;;")
    flags = " ".join(flag for action in parser._actions for flag in action.option_strings)
    return "\n".join(
        (
            "_kestrel_client() {",
            "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}",
            "    case $before in",
            *cases,
            "    esac",
            f'    mapfile -t COMPREPLY < <(compgen -W "{flags}" -- "$word")',
            "}",
            f"complete -F _kestrel_client {shlex.quote(parser.prog)}",
            "",
        )
    )


def _zsh(parser: argparse.ArgumentParser) -> str:
    lines = []
    for action in parser._actions:
        for flag in action.option_strings:
            spec = f"{flag}[{(action.help or '').partition(' (')[0]}]"  # without the default, and its % and :
            if action.type is Path:
                spec += ":file:_files"
            elif offered := _offered(action):
                spec += f":value:({' '.join(offered)})"
            elif action.nargs != 0:
                spec += ":value: "
            lines.append(f"        {shlex.quote(spec)} \\")
    return "\n".join(
        (
            "_kestrel_client() {",
            "    _arguments \\",
            *lines,
            "        && return",
            "}",
            f"compdef _kestrel_client {shlex.quote(parser.prog)}",
            "",
        )
    )


SHELLS = {"bash": _bash, "zsh": _zsh}
