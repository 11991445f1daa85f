"""Pages that are generated when the site is built: names from docstrings, command lines from parsers."""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tools.site.notebooks import page_from

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src")]

POPTORCH = {
    "Wrapping a model": ("trainingModel", "inferenceModel", "PoplarExecutor", "load"),
    "Data": ("DataLoader", "AsynchronousDataAccessor"),
    "Options": ("Options",),
    "Optimizers": ("optim.SGD", "optim.Adam", "optim.AdamW", "optim.LAMB", "optim.RMSprop"),
    "Errors": ("Error", "RecoverableError", "UnrecoverableError"),
}
"""The names of poptorch that most programs use; docs/poptorch-parity.md lists all."""

VALUES = {
    "How a program runs": ("pilotage.options.execution", "pilotage.options.batching"),
    "Choices": ("pilotage.options.choices", "pilotage.options.check"),
    "Errors": ("pilotage.errors",),
    "Events for listeners": ("pilotage.events",),
}


def generated_pages() -> dict[str, str]:
    """The text of each generated page."""
    return {
        "reference/pilotage.md": _names_of_pilotage(),
        "reference/options.md": _values(),
        "reference/poptorch.md": _names_of_poptorch(),
        "reference/popdist.md": _names_of_popdist(),
        "reference/command-lines.md": _command_lines(),
        "examples/faster-notebook.md": page_from(ROOT / "examples/faster/faster.ipynb"),
    }


def public_names(package: Path) -> list[str]:
    """The names in ``__all__`` of a package, without importing it."""
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [str(each.value) for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
    raise ValueError(f"{package} has no __all__")


def _names_of_pilotage() -> str:
    names = public_names(ROOT / "src/pilotage")
    first = [name for name in ("training", "inference", "batches", "CompiledModel") if name in names]
    others = sorted((name for name in names if name not in first), key=str.lower)
    text = "# Names of pilotage\n\nAll that `import pilotage` offers. Torch is imported when a name is first used.\n"
    text += "\n## Training and inference\n" + "".join(_of_pilotage(name) for name in first)
    return text + "\n## Further names\n" + "".join(_of_pilotage(name) for name in others)


def _of_pilotage(name: str) -> str:
    """The block of a name where it is defined, under the name that users write."""
    import pilotage

    home = pilotage._HOMES.get(name, "pilotage.errors")
    return _blocks([f"{home}.{name}"], heading=f"pilotage.{name}", toc_label=name)


def _values() -> str:
    text = "# Options, errors and events\n\nThe values behind the arguments of `pilotage.training`.\n"
    for title, modules in VALUES.items():
        text += f"\n## {title}\n" + _blocks(modules, show_root_heading="false", heading_level="2")
    return text


def _names_of_poptorch() -> str:
    text = "# Names of poptorch\n\nThe names that most programs use. "
    text += "[PopTorch, name by name](../poptorch-parity.md) lists all of them, and says what each does here.\n"
    for title, names in POPTORCH.items():
        text += f"\n## {title}\n" + _blocks(f"poptorch.{name}" for name in names)
    return text


def _names_of_popdist() -> str:
    names = sorted(public_names(ROOT / "dropins/src/popdist"), key=str.lower)
    text = "# Names of popdist\n\n[Scaling](../scaling.md) shows them in use.\n\n## Functions\n"
    return text + _blocks(f"popdist.{name}" for name in names if name != "rank")


def _blocks(names: Iterable[str], **options: str) -> str:
    lines = [f"        {name}: {value}\n" for name, value in options.items()]
    chosen = "".join(["    options:\n", *lines]) if lines else ""
    return "".join(f"\n::: {name}\n{chosen}" for name in names)


def _command_lines() -> str:
    os.environ["COLUMNS"] = "100"
    from pilotage.cli.main import build_parser
    from pilotage.cli.monitor import gc_monitor, hl_smi
    from pilotage.cli.run import poprun

    text = "# Command lines\n\nWhat each command prints with `--help`. `cosmictagger --help` also lists the fields of "
    text += (
        "its configuration, which [CosmicTagger](../cosmictagger.md) explains. `pilotage completion --help` says how "
    )
    text += "a shell completes all of them.\n"
    main = build_parser()
    for title, parser in (("pilotage", main), *_commands_of(main)):
        text += _help(title, parser)
    for program in (poprun, gc_monitor, hl_smi):
        parser = program.build_parser()
        text += _help(parser.prog, parser)
    return text


def _commands_of(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                found += [(child.prog, child), *_commands_of(child)]
    return found


def _help(title: str, parser: argparse.ArgumentParser) -> str:
    return f"\n## {title}\n\n```text\n{parser.format_help().rstrip()}\n```\n"
