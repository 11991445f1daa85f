"""The scripts with which `pilotage prove` is tested, and what it must find in them.

`accidents/NAME` holds ports in which something went wrong, `sound/NAME` ports in which nothing did: `before.py` is the
original, `after.py` the port; an accident without `before.py` is for the audit of one script. `endings/NAME` holds
scripts that do not end well. They are run in an empty folder, because they save where they stand.

- `# finding: NAME` stands at the end of the line at which NAME must be reported, on the first line of a longer
  statement; several names are separated by commas. The line is that of the call that makes a wrapper, an optimizer, a
  schedule or a loader, of the step (`optimizer.step()`, or the call of the program) for `host-fallback` and
  `no-gradient-exchange`, of `torch.save` for `weights-not-saved`, and of the operation, cast or `.eval()` otherwise.
- A wrapper that was made and then lost is `wrapper-lost` and not also `host-fallback`.
- A program that is left for the plain module is `wrapper-lost` at the step of that; a schedule that only the original
  has is `schedule-not-applied` where the port makes its optimizer.
- `# prove: ARGUMENTS` at the head of a script gives more arguments for `pilotage prove`, in which {before} and {after}
  stand for the paths of the scripts.
- `# ending: WORD` says how a script of `endings` ends.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent

NAMES = frozenset(
    {
        "wrapper-lost",
        "optimizer-unused",
        "schedule-not-applied",
        "no-gradient-exchange",
        "samples-dropped",
        "samples-repeated",
        "precision-not-as-asked",
        "loss-depends-on-batch-split",
        "host-fallback",
        "loss-root-differs",
        "eval-mode-in-training",
        "weights-not-saved",
    }
)
"""All findings."""

_FINDING = re.compile(r"#\s*finding:\s*(?P<names>[a-z-]+(?:\s*,\s*[a-z-]+)*)\s*$")
_ARGUMENTS = re.compile(r"^# prove: (?P<arguments>.+)$", re.MULTILINE)
_ENDING = re.compile(r"^# ending: (?P<word>[a-z-]+)$", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Expected:
    """A finding that must be reported."""

    name: str
    file: Path
    line: int


@dataclass(frozen=True, kw_only=True)
class Case:
    """An original and its port, or one script to audit."""

    folder: Path
    arguments: tuple[str, ...]
    """For `pilotage prove`, after the scripts."""

    expected: tuple[Expected, ...]
    """Nothing for a sound port."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def scripts(self) -> tuple[Path, ...]:
        """What is given to `pilotage prove`: the original, if there is one, and the port."""
        return tuple(path for path in (self.folder / "before.py", self.folder / "after.py") if path.is_file())


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A script that does not end well."""

    script: Path
    word: str


def accidents() -> list[Case]:
    """Ports with something to find."""
    return _cases(HERE / "accidents")


def sound_ports() -> list[Case]:
    """Ports with nothing to find."""
    return _cases(HERE / "sound")


def endings() -> list[Ending]:
    """Scripts that crash, hang, fork or never train."""
    return [_ending(path) for path in sorted((HERE / "endings").iterdir()) if path.is_file()]


def _cases(folder: Path) -> list[Case]:
    return [_case(path) for path in sorted(folder.iterdir()) if (path / "after.py").is_file()]


def _case(folder: Path) -> Case:
    scripts = {"before": str(folder / "before.py"), "after": str(folder / "after.py")}
    given = _ARGUMENTS.findall((folder / "after.py").read_text())
    arguments = tuple(
        argument.replace("{before}", scripts["before"]).replace("{after}", scripts["after"])
        for text in given
        for argument in shlex.split(text)
    )
    expected = tuple(found for path in sorted(folder.glob("*.py")) for found in _expected(path))
    return Case(folder=folder, arguments=arguments, expected=expected)


def _expected(path: Path) -> list[Expected]:
    lines = enumerate(path.read_text().splitlines(), 1)
    matches = [(number, match) for number, line in lines if (match := _FINDING.search(line))]
    return [Expected(name.strip(), path, number) for number, match in matches for name in match["names"].split(",")]


def _ending(path: Path) -> Ending:
    match = _ENDING.search(path.read_text())
    if match is None:
        raise ValueError(f"{path} does not say how it ends. Begin it with a line like: # ending: crashes")
    return Ending(script=path, word=match["word"])
