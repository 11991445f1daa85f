"""The engine's own public door."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import pydoc
import subprocess
import sys

import pytest
import torch
from torch import nn

import pilotage
from pilotage.door import WithLoss
from pilotage.errors import LossError, LostModelError, MissingArgumentError, OptionError
from pilotage.options.batching import Batching
from pilotage.options.choices import Recomputation
from pilotage.options.execution import Execution


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


def test_every_public_name_exists_and_is_listed():
    assert set(pilotage.__all__) < set(dir(pilotage))
    for name in pilotage.__all__:
        assert getattr(pilotage, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pilotage.nonsense


def test_importing_pilotage_imports_no_torch():
    script = (
        "import sys, pilotage; assert 'torch' not in sys.modules; pilotage.PilotageError; print('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == "False\n"


def test_a_model_and_a_loss_train_as_in_eager(twins, assert_equal, assert_same_state):
    mine, theirs = twins(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    loss = nn.CrossEntropyLoss()
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1, momentum=0.9), loss=loss)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        images, labels = torch.randn(5, 4), torch.randint(0, 3, (5,))
        outputs = step(images, labels)
        expected = theirs(images)
        value = loss(expected, labels)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        assert_equal(outputs, (expected.detach(), value.detach()))
    assert step.module is mine
    assert_same_state(mine, theirs)


def test_any_function_can_be_the_loss(twins, assert_same_state):
    def loss(output, target):
        return ((output - target) ** 4).mean() + output.abs().mean()

    mine, theirs = twins(lambda: nn.Linear(4, 2))
    pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1), loss=loss)(torch.ones(3, 4), torch.zeros(3, 2))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    loss(theirs(torch.ones(3, 4)), torch.zeros(3, 2)).backward()
    optimizer.step()
    assert_same_state(mine, theirs)


NO_SCALARS = {
    "elements": (nn.MSELoss(reduction="none"), r"What loss= returned is a tensor of shape \(3, 2\).*\.mean\(\)"),
    "number": (lambda output, target: 3.0, "loss= returned float"),
    "detached": (lambda output, target: output.detach().sum(), "does not depend on any parameter"),
}


@pytest.mark.parametrize("tier", ["eager", "graph"])
@pytest.mark.parametrize("kind", NO_SCALARS)
def test_a_loss_that_is_not_a_differentiable_scalar_is_refused(kind, tier):
    loss, words = NO_SCALARS[kind]
    module = nn.Linear(4, 2)
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), loss=loss, tier=tier)
    with pytest.raises(LossError, match=words):
        step(torch.ones(3, 4), torch.zeros(3, 2))


def test_a_loss_and_a_mark_that_do_not_depend_on_each_other_are_refused():
    class Marking(nn.Linear):
        def forward(self, x):
            pilotage.mark_loss(self.weight.square().sum())
            return super().forward(x)

    module = Marking(4, 2)
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), loss=nn.MSELoss())
    with pytest.raises(LossError, match="forward marks 2 independent losses"):
        step(torch.ones(3, 4), torch.zeros(3, 2))


def test_a_loss_with_weights_is_trained_with_the_model(twins, assert_same_state):
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, output, target):
            return (self.scale * (output - target) ** 2).mean()

    (mine, theirs), (loss, plain_loss) = twins(lambda: nn.Linear(4, 2)), twins(Scaled)
    optimizer = torch.optim.SGD([*mine.parameters(), *loss.parameters()], lr=0.1)
    pilotage.training(mine, optimizer, loss=loss)(torch.ones(3, 4), torch.zeros(3, 2))
    plain = torch.optim.SGD([*theirs.parameters(), *plain_loss.parameters()], lr=0.1)
    plain_loss(theirs(torch.ones(3, 4)), torch.zeros(3, 2)).backward()
    plain.step()
    assert_same_state(mine, theirs)
    assert_same_state(loss, plain_loss)


def test_several_inputs_come_before_the_target():
    bilinear = nn.Bilinear(2, 3, 4)
    output, loss = WithLoss(bilinear, nn.functional.mse_loss)(torch.ones(5, 2), torch.ones(5, 3), torch.zeros(5, 4))
    assert output.shape == (5, 4)
    assert loss.shape == ()


class Masked(nn.Linear):
    def forward(self, inputs, mask=None):
        return super().forward(inputs if mask is None else inputs * mask)


def test_inputs_with_a_name_go_to_the_model(twins, assert_same_state):
    mine, theirs = twins(lambda: Masked(3, 2))
    loss, mask = nn.MSELoss(), torch.tensor([1.0, 0.0, 0.5])
    pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1), loss=loss)(
        torch.ones(4, 3), torch.zeros(4, 2), mask=mask
    )
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    loss(theirs(torch.ones(4, 3), mask=mask), torch.zeros(4, 2)).backward()
    optimizer.step()
    assert_same_state(mine, theirs)


@pytest.mark.parametrize(
    ("given", "named"),
    [((torch.ones(4, 3),), {}), (([torch.ones(4, 3), torch.zeros(4, 2)],), {}), ((), {"inputs": torch.ones(4, 3)})],
)
def test_a_call_without_its_target_says_how_to_call(given, named):
    module = Masked(3, 2)
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), loss=nn.MSELoss())
    with pytest.raises(MissingArgumentError, match=r"then the target: step\(inputs, target\)"):
        step(*given, **named)


def test_options_given_by_position_are_answered_with_a_name():
    module = nn.Linear(3, 2)
    with pytest.raises(TypeError, match=r"takes module and optimizer by position.*such as loss="):
        pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), nn.MSELoss())


def test_an_optimizer_of_another_module_is_refused():
    with (
        pytest.raises(OptionError, match="holds no parameter of the module"),
        pytest.warns(UserWarning, match="not parameters"),
    ):
        pilotage.training(nn.Linear(2, 2), torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1))


def test_inference_runs_forward(assert_equal):
    module = nn.Linear(4, 3)
    batch = torch.randn(5, 4)
    assert_equal(pilotage.inference(module)(batch), module(batch).detach())


@pytest.mark.parametrize("option", ["device_iterations", "replicas"])
def test_a_wrong_count_is_refused_when_the_model_is_wrapped(option):
    with pytest.raises(OptionError, match=f"{option} is 0"):
        pilotage.inference(nn.Linear(2, 2), **{option: 0})


def test_the_record_says_where_each_step_ran():
    model = pilotage.inference(nn.Linear(2, 2), device_iterations=3)
    model(torch.ones(6, 2))
    assert str(model.record) == "1 calls, 0 updates; steps: 3 on cpu (graph)"


def test_the_optimizer_state_can_be_moved_to_another_model():
    batches = [torch.randn(4, 3) for _ in range(6)]

    def trainer():
        torch.manual_seed(1)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        return model, pilotage.training(model, optimizer, loss=lambda output, _: output.pow(2).mean(), backend="cpu")

    undisturbed, trains_on = trainer()
    assert trains_on.optimizer_state_dict() == {}
    for batch in batches:
        trains_on(batch, batch)

    first, begins = trainer()
    for batch in batches[:3]:
        begins(batch, batch)
    weights, learnt = copy.deepcopy(first.state_dict()), begins.optimizer_state_dict()

    second, ends = trainer()
    second.load_state_dict(weights)
    ends.compile(batches[0], batches[0])
    ends.load_optimizer_state_dict(learnt)
    for batch in batches[3:]:
        ends(batch, batch)
    assert torch.equal(second.weight, undisturbed.weight)
    assert torch.equal(second.bias, undisturbed.bias)


def test_the_world_is_one_process_unless_a_launcher_says_otherwise(monkeypatch):
    for name in (
        "RANK",
        "WORLD_SIZE",
        "OMPI_COMM_WORLD_SIZE",
        "SLURM_STEP_ID",
        "PMI_RANK",
        "POPDIST_NUM_TOTAL_REPLICAS",
    ):
        monkeypatch.delenv(name, raising=False)
    assert pilotage.world_here() == pilotage.World()
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert (pilotage.world_here().rank, pilotage.world_here().launcher) == (1, "torchrun")


def test_the_record_of_a_wrapped_model_is_found_and_a_bare_one_has_none():
    model = nn.Linear(2, 1)
    step = pilotage.inference(model)
    step(torch.randn(3, 2))
    assert pilotage.record_of(step) is step.record
    assert pilotage.record_of(step).steps[("cpu", "graph")] == 1
    assert pilotage.record_of(model) is None


def test_values_before_a_kept_one_are_recomputed_in_backward():
    class Model(nn.Module):
        def __init__(self, *, keeps: bool) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))
            self.keeps = keeps

        def forward(self, x):
            for layer in self.layers:
                x = torch.tanh(layer(x)).exp()
                if self.keeps:
                    pilotage.keep_for_backward(x)
            return nn.functional.mse_loss(x, torch.ones_like(x))

    counts = []
    for keeps in (False, True):
        model = Model(keeps=keeps)
        step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), tier="graph")
        step.compile(torch.ones(1, 2))
        (computation,) = step._executor.session.program.computations.values()
        counts.append(sum(node.target is torch.ops.aten.tanh.default for node in computation.graph.graph.nodes))
    assert counts == [2, 4]


LEFT_OUT = {"batching", "instance", "instances", "loss_rule"}
"""Fields of the options that no argument sets: what a job's environment or a drop-in decides."""


def test_every_option_is_an_argument_with_the_name_and_the_default_of_the_options():
    fields = {each.name: each for kind in (Execution, Batching) for each in dataclasses.fields(kind)}
    arguments = inspect.signature(pilotage.training).parameters
    assert fields.keys() - LEFT_OUT < arguments.keys()
    for name in fields.keys() - LEFT_OUT - {"check", "locations"}:
        assert arguments[name].default == fields[name].default, name
        assert arguments[name].annotation != "Any"


def test_inference_takes_what_has_a_meaning_without_training():
    training, inference = (inspect.signature(each).parameters for each in (pilotage.training, pilotage.inference))
    assert inference.keys() < training.keys()
    only_in_training = {
        *("optimizer", "loss", "clip_grad_norm", "clip_grad_value", "gradient_accumulation", "reduction", "pooling"),
        *("nonfinite_loss", "recomputation", "locations"),
    }
    assert training.keys() - inference.keys() == only_in_training
    for name in inference:
        assert inference[name].default == training[name].default


def test_help_shows_every_option_with_its_type():
    text = pydoc.render_doc(pilotage.training, renderer=pydoc.plaintext)
    for name in inspect.signature(pilotage.training).parameters:
        assert f"{name}: " in text
    assert "recomputation: 'str | Recomputation'" in text


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_wrapped_model_is_not_copied_and_its_module_is(copied):
    module = nn.Linear(2, 2)
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), loss=nn.MSELoss())
    step(torch.ones(2, 2), torch.ones(2, 2))
    with pytest.raises(LostModelError, match=r"cannot be copied or pickled.*\.module"):
        copied(step)
    assert torch.equal(copy.deepcopy(step.module).weight, module.weight)


def test_an_unknown_option_is_answered_with_the_one_that_was_probably_meant():
    model = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"argument 'device_iteration'\. Did you mean device_iterations\?"):
        pilotage.inference(model, device_iteration=2)
    with pytest.raises(
        TypeError, match=r"unexpected keyword argument 'bananas'\. The arguments are: module, optimizer"
    ):
        pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), bananas=2)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("criterion", "loss"), ("max_grad_norm", "clip_grad_norm"), ("accumulation_steps", "gradient_accumulation")],
)
def test_the_names_of_other_libraries_are_answered_with_ours(given, meant):
    model = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=rf"argument '{given}'\. Did you mean {meant}\?"):
        pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), **{given: None})


def test_a_misspelt_name_of_the_package_or_of_batches_is_answered():
    with pytest.raises(AttributeError, match=r"no attribute 'train'\. Did you mean training\?"):
        pilotage.train  # noqa: B018
    step = pilotage.inference(nn.Linear(2, 2))
    with pytest.raises(TypeError, match=r"argument 'bucket'\. Did you mean buckets\?"):
        pilotage.batches([], step, bucket=[8])


def test_recomputation_and_locations_reach_the_program():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    step = pilotage.training(model, optimizer, loss=nn.MSELoss(), recomputation="none", locations={"optimizer": 1})
    step(torch.ones(2, 2), torch.ones(2, 2))
    assert step._executor.execution.recomputation is Recomputation.NONE
    assert step._executor.execution.locations == pilotage.Locations(optimizer=1)
