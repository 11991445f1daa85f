from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pilotage_dropins import fallbacks


def run(program: str, *paths: Path) -> str:
    """What a program prints in a fresh interpreter that looks for packages in these folders first."""
    start = "".join(f"import sys; sys.path.insert(0, {str(path)!r})\n" for path in paths)
    ran = subprocess.run([sys.executable, "-c", start + program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_the_finder_is_registered_once_after_all_others():
    fallbacks.serve()
    finders = [finder for finder in sys.meta_path if isinstance(finder, fallbacks.Fallbacks)]
    assert len(finders) == 1


def test_it_finds_only_the_packages_that_it_serves():
    finder = fallbacks.Fallbacks()
    for name in fallbacks.NAMES:
        spec = finder.find_spec(name)
        assert spec is not None
        assert Path(spec.origin).is_file()
    assert finder.find_spec("torch") is None
    assert finder.find_spec("horovod.tensorflow") is None


@pytest.mark.slow
def test_installed_packages_are_never_hidden(tmp_path):
    for name in fallbacks.NAMES:
        (tmp_path / f"{name}.py").write_text("mine = True\n")
    imports = ", ".join(sorted(fallbacks.NAMES))
    assert run(f"import poptorch, {imports}; print(all(each.mine for each in ({imports})))", tmp_path) == "True"


@pytest.mark.slow
def test_the_packages_are_found_before_poptorch_is_imported():
    program = (
        "import horovod.torch, libpvti, popart, sys; "
        "print(all('fallback' in each.__file__ for each in (horovod, libpvti, popart)))"
    )
    assert run(f"import pilotage_dropins.fallbacks\n{program}") == "True"


def test_python_imports_the_finder_when_it_starts():
    line = (Path(__file__).parents[2] / "dropins/pilotage_fallbacks.pth").read_text()
    assert line.startswith("import ")
    assert line.count("\n") == 1
    program = f"import sys; sys.modules.pop({fallbacks.__name__!r}, None)"
    found = "print(sum(type(finder).__name__ == 'Fallbacks' for finder in sys.meta_path) > 0)"
    assert run(f"{program}\n{line}{found}") == "True"
    hidden = f"import sys; sys.modules[{fallbacks.__name__!r}] = None\n"
    assert run(f"{hidden}{line}print('went on')") == "went on"


def test_importing_the_finder_is_cheap():
    program = "import sys; before = set(sys.modules); import pilotage_dropins.fallbacks; print(len(sys.modules))"
    loaded = run(f"{program}; print('torch' in sys.modules, 'pilotage' in sys.modules)").split()
    assert loaded[1:] == ["False", "False"]
