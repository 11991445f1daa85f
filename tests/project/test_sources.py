"""House rules for the sources that a linter cannot check."""

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = {
    "pilotage": ROOT / "src",
    "cosmictagger": ROOT / "src",
    "poptorch": ROOT / "dropins/src",
    "popdist": ROOT / "dropins/src",
    "habana_frameworks": ROOT / "dropins/src",
    "habana_dataloader": ROOT / "dropins/src",
    "torch_hpu": ROOT / "dropins/src",
    "pilotage_dropins": ROOT / "dropins/src",
    "horovod": ROOT / "dropins/fallback",
    "libpvti": ROOT / "dropins/fallback",
    "popart": ROOT / "dropins/fallback",
    "poptorch_geometric": ROOT / "dropins/fallback",
}
MODULES = [path for name, folder in ROOTS.items() for path in sorted((folder / name).rglob("*.py"))]
CORE = [path for path in MODULES if ROOT / "src/pilotage" in path.parents]
FOLDERS = ("src", "dropins", "tests", "examples", "benchmarks", "docs", "tools", ".ci")
TEXTS = {".py", ".md", ".toml", ".txt", ".yaml", ".ipynb", ".html", ".svg", ".sh", ""}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
ACROSS_PARTS = (
    "tests/pilotage/arrival/test_faults.py",
    "tests/pilotage/equals_eager/",
    "tests/pilotage/proof/test_cases.py",
    "tests/poptorch/models/",
    "tests/poptorch/ops/test_in_wrappers.py",
    "tests/poptorch/test_model_libraries.py",
    "tests/poptorch/test_traps.py",
)
"""Tests of several parts together, without a single source."""
OPTIONAL = (
    "IPython",
    "PIL",
    "hypothesis",
    "matplotlib",
    "pandas",
    "pytest",
    "rich",
    "safetensors",
    "scipy",
    "sklearn",
    "torchvision",
    "tqdm",
)


def name_of(path: Path) -> str:
    for folder in ROOTS.values():
        if folder in path.parents:
            return ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    raise ValueError(path)


def every_file() -> list[Path]:
    files = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in files if "__pycache__" not in path.parts and ".git" not in path.parts]


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_file_is_longer_than_400_lines():
    files = [*MODULES, *(ROOT / "tests").rglob("*.py")]
    assert not [label(path) for path in files if len(path.read_text().splitlines()) > 400]


def test_every_module_has_a_docstring():
    assert not [label(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))]


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by PyTorch Geometric, if it is installed
def test_public_names_exist_and_are_listed_once():
    listed = [path for path in MODULES if "__all__ = " in path.read_text() and has_its_libraries(path)]
    modules = [importlib.import_module(name_of(path)) for path in listed]
    assert modules
    for module in modules:
        assert not [name for name in module.__all__ if not hasattr(module, name)], module.__name__
        assert len(module.__all__) == len(set(module.__all__)), module.__name__


def has_its_libraries(path: Path) -> bool:
    """Say whether a module can be imported: graphs need PyTorch Geometric, which is optional."""
    return "poptorch_geometric" not in path.parts or importlib.util.find_spec("torch_geometric") is not None


@pytest.mark.parametrize("package", ["pilotage", "poptorch", "popdist", "habana_frameworks"])
def test_every_public_name_of_a_package_is_listed(package):
    module = importlib.import_module(package)
    shown = {name for name, value in vars(module).items() if not name.startswith("_") and is_ours(value)}
    assert shown <= set(module.__all__)


def is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).split(".")[0] in ROOTS


def test_no_file_has_a_vague_name():
    vague = [label(path) for path in every_file() if path.stem in NAMES_THAT_SAY_NOTHING]
    assert not vague


def test_the_tests_mirror_the_sources():
    tests = [test for package in ROOTS for test in (ROOT / "tests" / package).rglob("test_*.py")]
    strays = [label(test) for test in tests if not has_a_source(test)]
    assert not [stray for stray in strays if not stray.startswith(ACROSS_PARTS)]


def has_a_source(test: Path) -> bool:
    """Say whether the source of test_SOURCE.py, test_SOURCE_ASPECT.py or SOURCE/test_ASPECT.py exists."""
    place = test.relative_to(ROOT / "tests")
    folder = ROOTS[place.parts[0]] / place.parent
    if folder.with_suffix(".py").is_file():
        return True
    words = place.stem.removeprefix("test_").split("_")
    names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
    return any((folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file() for name in names if name)


def test_no_file_contains_a_path_of_a_developers_machine():
    home = re.compile(r"(?<![\w.])/(?:home/(?!user/)\w+|root|work|Users/\w+)/[\w.]")
    found = []
    for path in every_file():
        if path.suffix in TEXTS:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            found += [f"{label(path)}:{number}" for number, line in enumerate(lines, 1) if home.search(line)]
    assert not found


def test_only_options_and_distributed_read_the_environment():
    reading = re.compile(r"\bos\.(environ|getenv|putenv)|from os import .*(environ|getenv)")
    readers = {label(path) for path in CORE if reading.search(path.read_text()) and "distributed" not in path.parts}
    # This one writes such a line into the scripts that it ports.
    assert readers - {"src/pilotage/porting/rules/hpu/imports.py"} == {"src/pilotage/options/environment.py"}


def test_drop_ins_import_the_engine_and_the_public_door_only():
    reaching = re.compile(r"""^\s*(?:from|import) pilotage\.(?!engine\b)|import_module\(["']pilotage\.""", re.MULTILINE)
    drop_ins = [*(ROOT / "dropins/src").rglob("*.py"), *(ROOT / "dropins/fallback").rglob("*.py")]
    assert len(drop_ins) > 200
    assert not [label(path) for path in drop_ins if reaching.search(path.read_text())]


def test_only_some_folders_compare_device_names():
    knowing = {"devices", "execution", "strategies", "compiler", "porting"}
    assert not [label(path) for path in CORE if not knowing & set(path.parts) and compares_device_names(path)]


def compares_device_names(path: Path) -> bool:
    return any(
        isinstance(side, ast.Constant) and side.value in ("cuda", "hpu")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
    )


def test_cosmictagger_names_compute_modes_only_to_check_settings_and_to_choose_the_device():
    application = ROOT / "src/cosmictagger"
    asking = {
        str(path.relative_to(application))
        for path in application.rglob("*.py")
        if "configuration" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ComputeMode"
    }
    assert asking == {"devices/choosing.py"}


PICKLING = re.compile(
    r"\b(all_gather_object|gather_object|broadcast_object_list|scatter_object_list|send_object_list|recv_object_list)\b"
    r"|\b(import|from) (pickle|cloudpickle|dill|marshal|shelve)\b|weights_only ?= ?False"
)


def test_nothing_from_files_or_other_processes_is_unpickled():
    found = [f"{label(path)}: {match[0]}" for path in MODULES for match in PICKLING.finditer(path.read_text())]
    # Batches that the user's loader workers send to their parent process, as in torch's loader.
    assert found == ["src/pilotage/data/sharing_mode.py: import pickle"]
    loading = re.compile(r"\btorch\.load\((?![^\n]*weights_only=True)")
    assert not [label(path) for path in MODULES if loading.search(path.read_text())]


def run_python(program: str) -> str:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_importing_pilotage_imports_no_torch():
    heavy = "('torch', 'numpy', 'rich', 'tqdm', 'matplotlib')"
    program = f"import sys, pilotage; print([name for name in {heavy} if name in sys.modules])"
    assert run_python(program) == "[]"


def test_the_core_imports_with_only_torch_and_numpy():
    names = [name_of(path) for path in CORE if path.stem != "__main__"]
    program = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r})); import importlib\n"
    program += f"print(len([importlib.import_module(name) for name in {names!r}]))"
    assert run_python(program) == str(len(names))
