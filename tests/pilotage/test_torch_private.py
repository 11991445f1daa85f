import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pilotage import torch_private
from pilotage.errors import TorchVersionError
from pilotage.version import TORCH_RANGE

ROOT = Path(__file__).parents[2]
FILES = [path for folder in ("src", "dropins/src") for path in sorted((ROOT / folder).rglob("*.py"))]
HOME = ROOT / "src/pilotage/torch_private.py"

UNDOCUMENTED = ("torch.fx.experimental",)
LOOKUPS = {"getattr", "hasattr", "setattr", "delattr", "attrgetter", "methodcaller", "import_module", "getLogger"}
NOT_OF_TORCH = {
    "_actions": "argparse's parser",
    "_at_fork_reinit": "a lock of threading",
    "_choices_actions": "argparse's commands",
    "_fields": "a named tuple",
    "_inheriting": "a process of multiprocessing",
    "_is_owned": "a lock of threading",
    "_prepare_inputs": "the Trainer of transformers, made to be overridden",
}
"""Private attributes of objects of the standard library and of transformers."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_private_path(path: str) -> bool:
    return path.split(".")[0] == "torch" and (any(map(is_private, path.split("."))) or path.startswith(UNDOCUMENTED))


class Uses(ast.NodeVisitor):
    """Private names of torch that a file uses; ``own`` are the attributes that our own classes define."""

    def __init__(self, own: set[str]) -> None:
        self.own = own
        self.bound: dict[str, str] = {}
        self.found: list[str] = []

    def note(self, path: str, node: ast.AST) -> None:
        if is_private_path(path):
            self.found.append(f"{path}, line {node.lineno}")

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.note(alias.name, node)
            self.bound[alias.asname or alias.name.split(".")[0]] = (
                alias.name if alias.asname else alias.name.split(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            self.note(path, node)
            self.bound[alias.asname or alias.name] = path

    def visit_Assign(self, node: ast.Assign) -> None:
        path = self.path(node.value)
        if path is not None and path.startswith("torch.") and isinstance(node.targets[0], ast.Name):
            self.bound[node.targets[0].id] = path
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self.path(node)
        if path is not None:
            self.note(path, node)
        elif is_private(node.attr) and node.attr not in self.own | NOT_OF_TORCH.keys():
            self.found.append(f"{ast.unparse(node)}, line {node.lineno}")
        if path is None:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        for text in texts if called in LOOKUPS else ():
            if is_private_path(text) or (is_private(text) and text not in self.own | NOT_OF_TORCH.keys()):
                self.found.append(f"{called}(... {text!r}), line {node.lineno}")
        self.generic_visit(node)

    def path(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Name):
            return self.bound.get(node.id)
        if isinstance(node, ast.Attribute) and (owner := self.path(node.value)) is not None:
            return f"{owner}.{node.attr}"
        return None


def defined_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name


@pytest.fixture(scope="module")
def own() -> set[str]:
    names = {name for path in FILES if path != HOME for name in defined_names(ast.parse(path.read_text()))}
    return names | {path.stem for path in FILES}


def uses(source: str, own: set[str]) -> list[str]:
    visitor = Uses(own)
    visitor.visit(ast.parse(source))
    return visitor.found


def test_no_other_file_uses_a_private_name_of_torch(own):
    found = {str(path.relative_to(ROOT)): uses(path.read_text(), own) for path in FILES if path != HOME}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    "source",
    [
        "import torch._dynamo",
        "from torch._ops import OpOverload",
        "from torch.utils import _pytree as pytree",
        "from torch.fx.experimental.proxy_tensor import make_fx",
        "import torch\ntorch._foreach_add_([], 1)",
        "from torch import nn\nnn.modules.batchnorm._BatchNorm",
        "import torch\naten = torch.ops.aten\naten._to_copy.default",
        "def version(tensor):\n    return tensor._version",
        "def version(tensor):\n    return tensor.detach()._version",
        "def version(tensor):\n    return getattr(tensor, '_version')",
        "import importlib\nimportlib.import_module('torch._inductor')",
    ],
)
def test_the_search_finds_each_way_to_use_a_private_name(source):
    assert uses(source, own=set())


def test_the_search_ignores_public_names():
    assert not uses("import torch\nfrom torch import nn\ntorch.add(1, 2).__class__\nnn.Linear(1, 1)", own=set())


def test_each_name_that_is_looked_up_later_exists():
    # In a separate process: Inductor takes seconds to import, and warns.
    done = run("from pilotage import torch_private\ntorch_private.check_all()")
    assert done.returncode == 0, done.stderr


def test_an_operator_of_inductor_is_found_before_anything_else_of_it():
    done = run("from pilotage.torch_private import max_pool_offsets_to_indices as found\nprint(found)")
    assert done.stdout.strip().startswith("prims._low_memory_max_pool_offsets_to_indices"), done.stderr


def test_an_unknown_name_is_an_ordinary_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        torch_private.no_such_name  # noqa: B018


def test_a_missing_name_that_is_looked_up_later_gives_the_one_error(monkeypatch):
    monkeypatch.setitem(torch_private.LAZY, "lost", "torch._inductor.lost_name")
    with pytest.raises(TorchVersionError) as caught:
        torch_private.lost  # noqa: B018
    assert "lost_name" in str(caught.value)
    assert f"torch {torch.__version__}" in str(caught.value)
    assert TORCH_RANGE in str(caught.value)


@pytest.mark.parametrize(
    ("loss", "first_use"),
    [
        ("del torch._foreach_add_", "import pilotage\npilotage.training"),
        ("del torch._ops.OpOverload", "import poptorch"),
        # A class without _cdata.
        ("torch.UntypedStorage = type('UntypedStorage', (), {})", "import pilotage\npilotage.Epochs"),
    ],
)
def test_a_missing_name_gives_the_one_error_at_the_first_use_of_torch(loss, first_use):
    done = run(f"import torch\nimport torch._ops\n{loss}\n{first_use}")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"pilotage.errors.TorchVersionError: torch {torch.__version__} lacks")
    assert TORCH_RANGE in last


def test_importing_pilotage_imports_no_torch():
    assert run("import pilotage, sys\nassert 'torch' not in sys.modules").returncode == 0


def test_using_torch_imports_no_compiler():
    code = (
        "import pilotage, sys\npilotage.training\nassert not {'torch._inductor', 'torch._dynamo'} & sys.modules.keys()"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_private_attributes_are_read_at_the_speed_of_attributes():
    # A getter in C: a Python function for each attribute would cost a call in every step.
    assert not hasattr(torch_private.storage_address, "__code__")
    assert not hasattr(torch_private.schema_of, "__code__")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
