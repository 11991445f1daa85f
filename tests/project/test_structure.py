"""House rules of the structure: small folders and classes, nothing written twice, and tests that mirror the sources.

Each rule has a list of places that still break it. A place that no longer breaks it must leave the list.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "src", ROOT / "dropins/src", ROOT / "dropins/fallback")
MODULES = [path for folder in SOURCES for path in sorted(folder.rglob("*.py"))]
PILOTAGE = ROOT / "src/pilotage"
CORE = [path for path in MODULES if PILOTAGE in path.parents]

LARGEST_FOLDER = 20
LARGE_FOLDERS: set[str] = set()
"""Folders that have yet to be divided."""

MOST_METHODS, MOST_FIELDS = 20, 12
REASON = "Large because"
"""How a sentence in the docstring of a large class begins."""
LARGE_CLASSES: set[str] = set()
"""Large classes that have yet to be divided or to give a reason."""

OURS = ("runtime", "strategies", "execution", "program", "optim", "distributed", "capture", "compiler", "devices")
"""Folders of the core whose classes have a name that an annotation could leave out."""
OF_OTHERS = {
    *("counter", "group", "model", "results", "schedule", "section", "sequence", "settings", "state", "step", "table"),
    *("constant", "kind", "loss", "operation", "record", "slot", "start", "structure", "store", "target"),
}
"""Words for a class of ours that also name what torch, numpy or the user has."""

PRIVATE_TO_OTHERS = {
    *("_actions", "_apply", "_base", "_buffers", "_make", "_modules", "_parameters", "_register", "_version"),
}
"""Private names of torch and of Python's library that classes of ours use too."""

PRIVATE_IN_POPTORCH = {
    *("_Popart", "_execution_strategy", "_freeze", "_unfreeze", "_ipu", "_phase_id", "_stage_id"),
    *("_module_namescope_enabled", "_relax_optimizer_checks", "_show_compilation_progress_bar"),
    "_source_location_excludes",
}
"""PopTorch's own private names, which the modules of our drop-in share as those of the vendor do."""

LONGEST_REPETITION = 10
REPETITIONS: set[tuple[str, ...]] = set()
"""Files that still repeat a longer block."""

LONGEST_WITHOUT_A_TEST_FILE = 150
WITHOUT_A_TEST_FILE: set[str] = set()
"""Long modules that have yet to get a test file of their own."""

UNTESTED: set[str] = set()
"""Modules whose direct users have no test file of their own either."""


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_folder_has_more_than_20_modules():
    modules = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert {label(folder) for folder, count in modules.items() if count > LARGEST_FOLDER} == LARGE_FOLDERS


def test_a_large_class_gives_a_reason():
    found = {
        node.name
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
        and is_large(node)
        and not any(line.strip().startswith(REASON) for line in (ast.get_docstring(node) or "").splitlines())
    }
    assert found == LARGE_CLASSES


def is_large(node: ast.ClassDef) -> bool:
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return len(methods) > MOST_METHODS or len({*annotated(node), *assigned(methods)}) > MOST_FIELDS


def annotated(node: ast.ClassDef) -> Iterator[str]:
    """The fields that the body of a class declares."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.unparse(each.annotation):
            yield ast.unparse(each.target)


def assigned(methods: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> Iterator[str]:
    """The fields that methods write: what stands behind `self.` on the left of an assignment."""
    for each in (each for method in methods for each in ast.walk(method)):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and ast.unparse(each.value) == "self":
            yield each.attr


def test_nothing_of_ours_is_annotated_any():
    """Parameters and fields that are named like a class of the core say which class it is."""
    names = {snake_case(name) for path in CORE if path.relative_to(PILOTAGE).parts[0] in OURS for name in classes(path)}
    names = (names | {"call", "plan", "walked"}) - OF_OTHERS
    found = {
        f"{label(path)}: {name}"
        for path in CORE
        for name, annotation in annotations(parsed(path))
        if name.strip("_") in names and annotation == "Any"
    }
    assert {"executor", "session", "program", "plan", "strategy"} <= names
    assert found == set()


def annotations(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The parameters and fields of a module, with the text of their annotations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield node.arg, ast.unparse(node.annotation)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            yield node.target.attr, ast.unparse(node.annotation)
        elif isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    yield each.target.id, ast.unparse(each.annotation)


def classes(path: Path) -> Iterator[str]:
    return (node.name for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef))


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def test_no_module_reaches_into_private_parts_of_an_object_from_another():
    assert reaches(CORE) == set()
    assert reaches([path for path in MODULES if path not in CORE], allowed=PRIVATE_IN_POPTORCH) == set()


def reaches(modules: list[Path], allowed: Collection[str] = ()) -> set[str]:
    """Private parts of classes of these modules, used in a module that does not define them."""
    defined = {path: set(private_names(parsed(path))) for path in modules}
    counts = Counter(name for names in defined.values() for name in names)
    return {
        f"{label(path)}: {ast.unparse(owner)}.{name}"
        for path in modules
        for owner, name in accesses(parsed(path))
        if ast.unparse(owner) not in ("self", "cls", "super()")
        and not ast.unparse(owner).startswith("torch")
        and counts[name]
        and name not in {*defined[path], *PRIVATE_TO_OTHERS, *allowed}
    }


def accesses(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """The attributes that a module uses, each with its owner; those that are named by a text, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.value, node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr", "hasattr"):
            owner, name, *_ = node.args
            if isinstance(name, ast.Constant):
                yield owner, str(name.value)


def private_names(tree: ast.AST) -> Iterator[str]:
    """The private methods and fields of a module's classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            names = {*annotated(node), *assigned(methods), *(method.name for method in methods)}
            yield from (name for name in names if name.startswith("_") and not name.startswith("__"))


def test_no_long_block_is_repeated():
    places = defaultdict(list)
    for path in MODULES:
        lines = code(path)
        for start in range(len(lines) - LONGEST_REPETITION):
            places["\n".join(lines[start : start + LONGEST_REPETITION + 1])].append(label(path))
    assert {tuple(sorted(found)) for found in places.values() if len(found) > 1} == REPETITIONS


def code(path: Path) -> list[str]:
    """The lines of a module without imports, comments, docstrings and blank lines."""
    left_out: set[int] = set()
    for node in ast.walk(parsed(path)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, node.end_lineno + 1))
    lines = [line.strip() for number, line in enumerate(path.read_text().splitlines(), 1) if number not in left_out]
    return [line for line in lines if line and not line.startswith("#")]


def test_a_long_module_has_a_test_file_of_its_own():
    long = {
        name
        for name, path in named().items()
        if len(path.read_text().splitlines()) > LONGEST_WITHOUT_A_TEST_FILE and has_behaviour(path)
    }
    assert {name for name in long if not has_test_file(name)} == WITHOUT_A_TEST_FILE


def test_every_module_is_tested_by_its_own_test_file_or_through_a_direct_user():
    """A direct user is a test, or a module with a test file of its own; what a package passes on, it uses for them."""
    modules = named()
    used = {name for path in (ROOT / "tests").rglob("*.py") for name in imported(path)}
    used |= {each for name, path in modules.items() if has_test_file(name) for each in imported(path)}
    used |= {each for name in used if modules[name].name == "__init__.py" for each in imported(modules[name])}
    tested = {name for name, path in modules.items() if has_test_file(name) or not has_behaviour(path)}
    assert modules.keys() - used - tested == UNTESTED


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def named() -> dict[str, Path]:
    """Every module by its dotted name."""
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in SOURCES
        for path in MODULES
        if folder in path.parents
    }


def has_behaviour(path: Path) -> bool:
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(parsed(path)))


def has_test_file(name: str) -> bool:
    """Say whether test_MODULE.py, test_MODULE_ASPECT.py or MODULE/test_ASPECT.py is there in the mirrored folder."""
    *folders, module = name.split(".")
    folder = ROOT.joinpath("tests", *folders)
    names = [test.stem for test in folder.glob("test_*.py")]
    if any(each == f"test_{module}" or each.startswith(f"test_{module}_") for each in names):
        return True
    return any((folder / module).glob("test_*.py"))


def imported(path: Path) -> set[str]:
    """The modules of ours that a file imports."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & named().keys()
