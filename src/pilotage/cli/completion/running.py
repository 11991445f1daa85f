"""Running `pilotage completion`.

The scripts are generated from the parsers and hold all words themselves. They need no package, and completing a word
does not start Python, which would take a tenth of a second at every press of Tab.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable

from pilotage.cli.completion.bash import bash_script, zsh_script
from pilotage.cli.completion.fish import fish_script
from pilotage.cli.completion.grammar import Grammar, grammar_of

__all__ = ["SHELLS", "add_arguments", "grammars", "run"]

SHELLS: dict[str, Callable[[Iterable[Grammar]], str]] = {
    "bash": bash_script,
    "fish": fish_script,
    "zsh": zsh_script,
}

_USE = """\
bash: put   eval "$(pilotage completion bash)"     into ~/.bashrc
zsh:  put   eval "$(pilotage completion zsh)"      into ~/.zshrc
fish: put   pilotage completion fish | source      into ~/.config/fish/config.fish

It completes pilotage, poprun, gc-monitor and hl-smi. cosmictagger's words come from hydra:
eval "$(cosmictagger -sc install=bash)\""""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the name of the shell."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _USE
    parser.add_argument("shell", choices=sorted(SHELLS), help="the shell that reads the script")


def run(arguments: Namespace) -> int:
    """Print the script."""
    print(SHELLS[arguments.shell](grammars()), end="")
    return 0


def grammars() -> list[Grammar]:
    """The grammar of each of our commands, those of the drop-ins too."""
    from pilotage.cli.main import build_parser
    from pilotage.cli.monitor import gc_monitor, hl_smi
    from pilotage.cli.run import poprun

    return [
        grammar_of(build_parser(), ("pilotage",)),
        grammar_of(poprun.build_parser(), ("poprun",)),
        grammar_of(gc_monitor.build_parser(), ("gc-monitor",)),
        grammar_of(hl_smi.build_parser(), ("hl-smi",)),
    ]
