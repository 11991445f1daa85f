"""The contract between the core and the drop-ins."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage import engine

ROOT = Path(__file__).parents[2]
PACKAGES = ("poptorch", "popdist", "habana_frameworks", "pilotage_dropins")
DROPINS = [*(ROOT / "dropins/src" / name for name in PACKAGES), ROOT / "dropins/fallback"]


def imports_in(tree: ast.AST) -> set[tuple[str, str]]:
    """Modules and names of all `from module import name`."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {(str(node.module), alias.name) for node in froms for alias in node.names}


def imported_by_dropins() -> set[tuple[str, str]]:
    files = [file for folder in DROPINS for file in folder.rglob("*.py")]
    return set().union(*(imports_in(ast.parse(file.read_text())) for file in files))


def test_importing_engine_imports_no_torch():
    program = "import sys, pilotage.engine; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


def test_engine_offers_exactly_what_the_dropins_import():
    assert {name for module, name in imported_by_dropins() if module == "pilotage.engine"} == set(dir(engine))


def test_the_type_checker_sees_the_same_names_from_the_same_modules():
    tree = ast.parse(Path(engine.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    whole = {tuple(module.rsplit(".", 1)) for module in engine._MODULES}
    assert imports_in(block) == {(module, name) for name, module in engine._HOMES.items()} | whole


@pytest.mark.parametrize("name", dir(engine))
def test_each_name_is_found(name):
    assert getattr(engine, name) is not None


def test_an_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'pilotage\.engine' has no attribute 'Session'"):
        _ = engine.Session
