"""poprun's options in a file, one `name = value` per line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pilotage.cli.run.arguments import add_arguments
from pilotage.cli.run.small_files import read_small_file
from pilotage.errors import OptionError

__all__ = ["export_configuration", "with_imported"]

_NOT_IN_FILES = {
    "program",
    "command",
    "import_config",
    "export_config",
    "overwrite_config",
    "version",
    "version_format",
}


def with_imported(given: Namespace) -> Namespace:
    """The options of --import-config, overridden by those of the command line."""
    if given.import_config is None:
        return given
    imported = vars(_read(Path(given.import_config)))
    given_here = {name: value for name, value in vars(given).items() if value is not None}
    return Namespace(**{**vars(given), **imported, **given_here})


def export_configuration(given: Namespace) -> None:
    """Write the given options to a file, which must not exist unless --overwrite-config is set."""
    file = Path(given.export_config)
    if file.exists() and not given.overwrite_config:
        raise OptionError(f"The file {str(file)!r} already exists. Add --overwrite-config 1 to overwrite it.")
    options = {name: value for name, value in vars(given).items() if name not in _NOT_IN_FILES and value is not None}
    lines = [f"{name.replace('_', '-')} = {_shown(value)}" for name, value in options.items()]
    try:
        file.write_text("".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise OptionError(f"The file {str(file)!r} cannot be written: {error.strerror}.") from None


def _read(file: Path) -> Namespace:
    text = read_small_file(str(file), "file")
    words = []
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = line.partition("=")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals:
            raise OptionError(f"Line {number} of {str(file)!r} is {line!r}. Write: name = value")
        words.append((number, name.strip(), value.strip()))
    return _parsed(file, words)


def _parsed(file: Path, words: list[tuple[int, str, str]]) -> Namespace:
    parser = ArgumentParser(exit_on_error=False, add_help=False)
    add_arguments(parser)
    known = {text.lstrip("-"): action for action in parser._actions for text in action.option_strings}
    options: list[str] = []
    for number, name, value in words:
        if name not in known or known[name].dest in _NOT_IN_FILES:
            raise OptionError(f"Line {number} of {str(file)!r} has the unknown option {name!r}.")
        if name == "verbose":
            if not (value.isdecimal() and len(value) == 1):
                raise OptionError(f"Line {number} of {str(file)!r} has verbose = {value!r}. Give a number, 0 to 2.")
            options += ["-v"] * int(value)
        elif name == "debug":
            options += ["--debug"] if value == "1" else []
        else:
            options.append(f"--{name}={value}")
    try:
        found = parser.parse_args(options)
    except Exception as error:
        raise OptionError(f"The file {str(file)!r} cannot be used: {error}.") from None
    return Namespace(**{name: value for name, value in vars(found).items() if value is not None and name != "program"})


def _shown(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
