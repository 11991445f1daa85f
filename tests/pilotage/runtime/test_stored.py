"""Compiled models as files."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import ProgramFileError
from pilotage.runtime.executor import Executor
from pilotage.runtime.stored import BareModule, differences, load_weights, read_stored, store


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x, scale=1.0):
        output = self.dropout(self.norm(self.second(self.first(x)))) * scale
        return output, functional.mse_loss(output, torch.ones_like(output))


def training(module, **options):
    return pilotage.training(module, torch.optim.Adam(module.parameters(), lr=0.1), **options)


@pytest.fixture
def stored(tmp_path):
    torch.manual_seed(0)
    module = Tied()
    step = training(module, seed=5)
    for _ in range(3):
        step(torch.randn(4, 3))
    store(step._executor, tmp_path / "model", extra={"remember": [1, "two"]})
    return step, read_stored(tmp_path / "model")


def resume(stored, module, execution):
    executor = Executor(module, execution=execution, plan=stored.program.plan, signature=stored.signature)
    executor.adopt(stored.program, stored.optimizer)
    executor.session.streams.states = stored.random_streams
    return executor


def test_a_model_from_a_file_continues_exactly(stored, assert_equal):
    step, file = stored
    module = BareModule.of(file)
    executor = resume(file, module, step._executor.execution)
    assert executor.session.state.counter.item() == 3
    for _ in range(3):
        batch = torch.randn(4, 3)
        assert_equal(executor(batch), step(batch))
    assert_equal(dict(module.state_dict()), dict(step.module.state_dict()))
    assert file.extra == {"remember": [1, "two"]}


def test_defaults_and_names_of_arguments_are_kept(stored):
    step, file = stored
    executor = resume(file, BareModule.of(file), step._executor.execution)
    executor(x=torch.randn(4, 3))
    with pytest.raises(pilotage.errors.InputError, match=r"Value mismatch for scale: expected 1.0 but got 2.0"):
        executor(torch.randn(4, 3), scale=2.0)


def test_tied_weights_stay_tied(stored):
    module = BareModule.of(stored[1])
    assert module.second.weight is module.first.weight
    assert set(dict(module.named_parameters())) == {
        "first.weight",
        "first.bias",
        "second.bias",
        "norm.weight",
        "norm.bias",
    }


def test_a_module_from_a_file_has_no_forward(stored):
    with pytest.raises(RuntimeError, match="has no Python code"):
        BareModule.of(stored[1])(torch.ones(1, 3))


def test_weights_go_into_a_module_of_the_original_class(stored, assert_equal):
    step, file = stored
    module = Tied()
    load_weights(module, file.weights)
    assert_equal(dict(module.state_dict()), dict(step.module.state_dict()))
    assert differences(module, file.program) == []


def test_differences_to_another_module_are_named(stored):
    class Other(Tied):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(4)
            self.more = nn.Linear(1, 1, bias=False)
            del self.first.bias

    found = differences(Other(), stored[1].program)
    assert "first.bias is missing" in found
    assert "more.weight is not in the file" in found
    assert "norm.weight is float32[4] instead of float32[3]" in found


def test_weights_can_be_left_out(tmp_path):
    step = training(Tied())
    step(torch.randn(4, 3))
    store(step._executor, tmp_path / "model", with_weights=False, with_random_streams=False)
    file = read_stored(tmp_path / "model")
    assert (file.weights, file.random_streams) == (None, None)


@pytest.mark.slow
def test_a_file_runs_in_a_process_that_has_never_seen_the_class(tmp_path, assert_equal):
    module = Tied().eval()
    infer = pilotage.inference(module)
    batch = torch.randn(4, 3)
    expected = infer(batch)
    store(infer._executor, tmp_path / "model")
    torch.save((batch, expected), tmp_path / "data.pth")
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, pathlib, torch
            from pilotage.runtime.executor import Executor
            from pilotage.runtime.stored import BareModule, read_stored

            folder = pathlib.Path(sys.argv[1])
            stored = read_stored(folder / "model")
            executor = Executor(BareModule.of(stored), signature=stored.signature)
            executor.adopt(stored.program)
            batch, expected = torch.load(folder / "data.pth")
            print([torch.equal(a, b) for a, b in zip(executor(batch), expected, strict=True)])
            """
        )
    )
    result = subprocess.run(
        [sys.executable, script, tmp_path], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.stdout == "[True, True]\n", result.stderr


def test_tensors_stay_valid_if_the_file_is_overwritten(stored, tmp_path):
    _, file = stored
    expected = {name: tensor.clone() for name, tensor in file.weights.items()}
    size = (tmp_path / "model").stat().st_size
    with (tmp_path / "model").open("r+b") as place:
        place.write(bytes(size))
        place.truncate(0)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in file.weights.items())


def test_a_checkpoint_is_not_taken_for_a_compiled_model(stored, tmp_path):
    step, _ = stored
    path = step.save_checkpoint(tmp_path / "checkpoints", 3)
    with pytest.raises(ProgramFileError, match="contains a checkpoint, not a compiled model"):
        read_stored(path)


def test_a_compiled_model_is_not_taken_for_a_checkpoint(stored, tmp_path):
    step, _ = stored
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "model").rename(tmp_path / "checkpoints" / "checkpoint-00000003-0000.pilotage")
    with pytest.raises(ProgramFileError, match=r"checkpoint-00000003-0000\.pilotage is damaged: its name says step 3"):
        step.restore_checkpoint(tmp_path / "checkpoints")
