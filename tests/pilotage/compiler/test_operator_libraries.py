"""Programs with custom operators are compiled: the compiling process loads what defines them."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch

import pilotage
from pilotage.compiler.operator_libraries import OperatorLibraries
from pilotage.errors import OptionError

LIBRARY = """
import torch

@torch.library.custom_op("{namespace}::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x ** 3

@cube.register_fake
def _(x):
    return torch.empty_like(x)

cube.register_autograd(
    lambda ctx, gradient: gradient * 3 * ctx.saved_tensors[0] ** 2,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)
"""

MODEL = """
class Cubic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.ops.{namespace}.cube(self.linear(x)).square().mean()
"""

TRAINING = """
import sys
import torch
import pilotage
{library}
{model}
torch.manual_seed(0)
model = Cubic()
step = pilotage.training(
    model, torch.optim.SGD(model.parameters(), lr=0.01), backend="cpu", tier="compiled", cache_directory=sys.argv[1]
)
print(float(step(torch.randn(8, 4))), step.record.latest_tier)
"""


def run(tmp_path, library, namespace):
    script = tmp_path / "script.py"
    model = MODEL.format(namespace=namespace)
    script.write_text(TRAINING.format(library=library, model=textwrap.dedent(model)))
    command = [sys.executable, str(script), str(tmp_path / "cache")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_an_operator_of_a_module_is_compiled(tmp_path):
    (tmp_path / "cubes.py").write_text(LIBRARY.format(namespace="of_a_module"))
    done = run(tmp_path, "import cubes", "of_a_module")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "compiled"
    assert "Agrees with eager PyTorch" in done.stderr


def test_an_operator_of_the_script_itself_is_refused_with_what_to_do(tmp_path):
    done = run(tmp_path, LIBRARY.format(namespace="of_the_script"), "of_the_script")
    assert done.returncode != 0
    assert "of_the_script::cube, which the script itself defines" in done.stderr
    assert "define the operator in a module" in done.stderr


@pytest.mark.long
def test_a_module_that_trains_when_it_is_imported_does_not_train_again_to_be_compiled(tmp_path):
    script, imports = tmp_path / "training.py", tmp_path / "imports"
    library, model = LIBRARY.format(namespace="of_a_script"), MODEL.format(namespace="of_a_script")
    script.write_text(f"open({str(imports)!r}, 'a').write('.')\n" + TRAINING.format(library=library, model=model))
    command = [sys.executable, "-c", "import training", str(tmp_path / "cache")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0
    assert "this module runs a program when it is imported" in done.stderr
    assert imports.read_text() == ".."


@pytest.fixture(scope="module")
def cubic():
    """A model with an operator of this module."""
    names = {"torch": torch, "__name__": __name__}
    exec(LIBRARY.format(namespace="operator_libraries_test") + MODEL.format(namespace="operator_libraries_test"), names)
    return names["Cubic"]


def program_of(model):
    step = pilotage.training(
        model, torch.optim.SGD(model.parameters(), lr=0.01), backend="cpu", tier="graph", check="off"
    )
    step.compile(torch.randn(8, 4))
    return step._executor.session.captured


def test_the_module_that_defines_an_operator_is_found(cubic):
    libraries = OperatorLibraries.of(program_of(cubic()))
    assert libraries.modules == (__name__,)
    assert OperatorLibraries.from_data(libraries.to_data()) == libraries


def test_programs_of_torch_need_no_library():
    class Plain(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).square().mean()

    assert OperatorLibraries.of(program_of(Plain(4, 4))) == OperatorLibraries()


def test_an_operator_on_the_host_is_refused():
    @torch.library.custom_op("operator_libraries_test::on_host", mutates_args=(), tags=[torch.Tag.cudagraph_unsafe])
    def on_host(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    on_host.register_fake(torch.empty_like)
    on_host.register_autograd(lambda _, gradient: gradient)

    class Hosted(torch.nn.Linear):
        def forward(self, x):
            return on_host(super().forward(x)).square().mean()

    with pytest.raises(OptionError, match="operator_libraries_test::on_host, which works on the host"):
        OperatorLibraries.of(program_of(Hosted(4, 4)))


def test_libraries_are_loaded(tmp_path, monkeypatch):
    (tmp_path / "loaded_by_name.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    files = []
    monkeypatch.setattr(torch.ops, "load_library", files.append)
    OperatorLibraries(("loaded_by_name",), ("/lib/operators.so",)).load()
    assert files == ["/lib/operators.so"]
    assert "loaded_by_name" in sys.modules
    del sys.modules["loaded_by_name"]
