"""Completion in bash, and in zsh by its emulation of bash."""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.cli.completion.grammar import Grammar

__all__ = ["bash_script", "zsh_script"]

_FUNCTION = """\
_{name}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local place="{program}" words="" files="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$place $word" in
{places}            *) ;;
        esac
    done
    case "$place $before" in
{values}        *) ;;
    esac
    case "$place" in
{words}    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [[ -n "$files" && "$current" != -* ]]; then
        COMPREPLY+=($(compgen -f -- "$current"))
    fi
}}
complete -o bashdefault -F _{name} {program}
"""


def bash_script(commands: Iterable[Grammar]) -> str:
    """One function for each command."""
    return "\n".join(_function(command) for command in commands)


def zsh_script(commands: Iterable[Grammar]) -> str:
    """The same functions: zsh understands them after `bashcompinit`."""
    start = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
    return start + bash_script(commands)


def _function(command: Grammar) -> str:
    (program,) = command.path
    everywhere = command.everywhere()
    return _FUNCTION.format(
        name=program.replace("-", "_"),
        program=program,
        places="".join(_place(each) for each in everywhere[1:]),
        values="".join(line for each in everywhere for line in _values(each)),
        words="".join(_words(each) for each in everywhere),
    )


def _place(grammar: Grammar) -> str:
    path = " ".join(grammar.path)
    return f'            "{path}") place="{path}" ;;\n'


def _values(grammar: Grammar) -> Iterable[str]:
    path = " ".join(grammar.path)
    for flag in grammar.flags:
        if flag.takes_value:
            cases = "|".join(f'"{path} {name}"' for name in flag.names)
            found = "-f" if flag.takes_files else f'-W "{" ".join(flag.values)}"'
            yield f'        {cases}) COMPREPLY=($(compgen {found} -- "$current")); return ;;\n'


def _words(grammar: Grammar) -> str:
    names = [name for flag in grammar.flags for name in flag.names]
    words = [*grammar.words, *(command.path[-1] for command in grammar.commands), *names]
    return f'        "{" ".join(grammar.path)}") words="{" ".join(words)}" files="{"yes" * grammar.takes_files}" ;;\n'
