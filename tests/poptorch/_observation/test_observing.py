"""Names, anchors, times and operations of a compiled program."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from poptorch import OutputMode

pytestmark = pytest.mark.slow


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.fc2 = nn.Linear(4, 2)

    def forward(self, x, labels=None):
        out = self.fc2(torch.relu(self.fc1(x)))
        return out if labels is None else (out, functional.cross_entropy(out, labels))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model()


def options(iterations=1, accumulation=1, replicas=1):
    chosen = poptorch.Options().deviceIterations(iterations).replicationFactor(replicas)
    chosen.Training.gradientAccumulation(accumulation)
    return chosen


def batch(size):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(size, 3, generator=generator), torch.randint(0, 2, (size,), generator=generator)


def sgd(model):
    return poptorch.optim.SGD(model.parameters(), lr=0.1)


# Names


def test_the_tensors_of_a_training_model_have_the_names_of_poptorch(model):
    training = poptorch.trainingModel(model, optimizer=sgd(model))
    with pytest.raises(AssertionError, match="not been compiled"):
        training.getTensorNames()
    training.compile(*batch(4))
    names = training.getTensorNames()
    for parameter in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"):
        expected = {
            parameter,
            f"Gradient___{parameter}",
            f"UpdatedVar___{parameter}",
            f"scaledLearningRate0___specific___{parameter}",
            f"weightDecayScaleFactor0___specific___{parameter}",
        }
        assert expected <= set(names)
    assert {"input", "input/1", "loss"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("accumulation", [1, 2])
def test_every_name_can_be_anchored(model, accumulation):
    training = poptorch.trainingModel(copy.deepcopy(model), options(accumulation=accumulation))
    training.compile(*batch(4))
    chosen = options(accumulation=accumulation)
    several = ("getitem", "nll_loss_forward", "_foreach", "_assert", "add_", "zero")
    names = [name for name in training.getTensorNames() if not name.startswith(several)]
    for name in names:
        chosen.anchorTensor(f"my {name}", name)
    anchored = poptorch.trainingModel(model, chosen)
    anchored(*batch(4))
    assert all(isinstance(anchored.getAnchoredTensor(f"my {name}"), torch.Tensor) for name in names)


# Anchors


def test_gradients_losses_and_weights_can_be_anchored(model):
    plain = copy.deepcopy(model)
    chosen = poptorch.Options()
    chosen.anchorTensor("gradient", "Gradient___fc2.bias")
    chosen.anchorTensor("new", "UpdatedVar___fc2.weight")
    chosen.anchorTensor("old", "fc2.weight")
    chosen.anchorTensor("the loss", "loss")
    chosen.anchorTensor("rate", "scaledLearningRate0___specific___fc2.weight")
    chosen.anchorTensor("second input", "input/1")
    training = poptorch.trainingModel(model, chosen, sgd(model))
    for _ in range(2):
        old = plain.fc2.weight.detach().clone()
        x, labels = batch(4)
        out, loss = training(x, labels)
        expected = plain(x, labels)
        plain.zero_grad()
        expected[1].backward()
        torch.optim.SGD(plain.parameters(), lr=0.1).step()
        torch.testing.assert_close((out, loss), expected)
        torch.testing.assert_close(training.getAnchoredTensor("gradient"), plain.fc2.bias.grad)
        torch.testing.assert_close(training.getAnchoredTensor("new"), plain.fc2.weight.detach())
        torch.testing.assert_close(training.getAnchoredTensor("old"), old)
        torch.testing.assert_close(training.getAnchoredTensor("the loss"), expected[1].detach())
        assert float(training.getAnchoredTensor("rate")) == pytest.approx(0.1)
        second = training.getAnchoredTensor("second input")
        assert (second.tolist(), second.dtype) == (labels.tolist(), torch.int32)


SHAPES = [
    (None, 1, 2),
    (OutputMode.Final, 1, 2),
    (OutputMode.All, 1, 2 * 4 * 3),
    (OutputMode.Sum, 1, 2),
    (OutputMode.EveryN, 2, 2 * 2 * 3),
]


@pytest.mark.parametrize(("mode", "period", "values"), SHAPES)
def test_an_anchor_has_its_own_output_mode(model, mode, period, values):
    chosen = options(iterations=4, accumulation=3, replicas=2)
    chosen.anchorTensor("loss of each", "loss", OutputMode.All)
    chosen.anchorTensor("chosen", "loss", mode, period)
    chosen.anchorTensor("hidden", "addmm", mode, period)
    training = poptorch.trainingModel(model, chosen, sgd(model))
    out, loss = training(*batch(48))
    each, few = training.getAnchoredTensor("loss of each"), training.getAnchoredTensor("chosen")
    assert (out.shape, loss.shape, each.shape, few.shape) == ((4, 2), (2,), (24,), (values,))
    assert training.getAnchoredTensor("hidden").shape == (2 * values, 4)
    torch.testing.assert_close(loss, each[-2:])
    expected = {
        None: each[-2:],
        OutputMode.Final: each[-2:],
        OutputMode.All: each,
        OutputMode.Sum: each.reshape(12, 2).sum(0),
        OutputMode.EveryN: torch.cat([each[6:12], each[18:24]]),
    }
    torch.testing.assert_close(few, expected[mode])


@pytest.mark.parametrize("mode", [OutputMode.All, OutputMode.Final, OutputMode.Sum, OutputMode.EveryN])
def test_outputs_are_the_same_with_and_without_anchors(model, mode):
    def run(anchor):
        chosen = options(iterations=4, accumulation=2).outputMode(mode, 2 if mode is OutputMode.EveryN else None)
        if anchor:
            chosen.anchorTensor("loss", "loss")
        return poptorch.trainingModel(copy.deepcopy(model), chosen, None)(*batch(16))

    torch.testing.assert_close(run(True), run(False), rtol=0, atol=0)


def test_a_single_step_keeps_the_rank_of_an_anchor(model):
    chosen = poptorch.Options()
    chosen.anchorTensor("loss", "loss")
    training = poptorch.trainingModel(model, chosen)
    training(*batch(4))
    assert training.getAnchoredTensor("loss").shape == ()


def test_weights_after_a_pooled_update_are_those_after_the_last(model):
    chosen = options(iterations=2, accumulation=2)
    chosen.anchorTensor("new", "UpdatedVar___fc1.weight")
    training = poptorch.trainingModel(model, chosen)
    training(*batch(8))
    torch.testing.assert_close(training.getAnchoredTensor("new"), model.fc1.weight.detach())
    chosen = options(iterations=2, accumulation=2)
    chosen.anchorTensor("new", "UpdatedVar___fc1.weight", OutputMode.All)
    with pytest.raises(poptorch.Error, match=r"OutputMode\.Final"):
        poptorch.trainingModel(Model(), chosen)


def test_unknown_names_cannot_be_anchored(model):
    training = poptorch.trainingModel(model)
    training(*batch(4))
    with pytest.raises(AssertionError, match="No tensor is anchored as 'gradient'"):
        training.getAnchoredTensor("gradient")
    for wrong in ("Gradient___fc9.weight", "nothing", "momentum___specific___fc9.weight"):
        chosen = poptorch.Options()
        chosen.anchorTensor("mine", wrong)
        inference = poptorch.inferenceModel(model, chosen)
        with pytest.raises(poptorch.Error, match="no tensor named"):
            inference(batch(4)[0])


def test_inference_can_be_anchored_too(model):
    chosen = poptorch.Options().deviceIterations(2)
    chosen.anchorTensor("hidden", "relu")
    inference = poptorch.inferenceModel(model, chosen)
    x, _ = batch(4)
    with pytest.raises(AssertionError, match="not been run"):
        inference.getAnchoredTensor("hidden")
    inference(x)
    torch.testing.assert_close(inference.getAnchoredTensor("hidden"), torch.relu(model.fc1(x)).detach())


# Times


def test_a_model_that_was_not_run_has_empty_counters(model):
    inference = poptorch.inferenceModel(model)
    empty = {name: [[]] for name in ("input", "input_complete", "output", "output_complete")}
    assert inference.getPerfCounters() == empty
    assert inference.getLatency() == (0.0, 0.0, 0.0)
    inference(batch(1)[0])
    inference.destroy()
    assert inference.getPerfCounters() == empty


@pytest.mark.parametrize(
    ("mode", "period", "results"),
    [(None, None, 2), (OutputMode.Sum, None, 2), (OutputMode.All, None, 24), (OutputMode.EveryN, 2, 12)],
)
def test_counters_have_one_time_for_each_step(model, mode, period, results):
    chosen = options(iterations=4, accumulation=3, replicas=2)
    if mode is not None:
        chosen.outputMode(mode, period)
    training = poptorch.trainingModel(model, chosen)
    training(*batch(24))
    counters = training.getPerfCounters()
    assert [len(steps) for steps in counters["input"]] == [24, 24]
    assert [len(steps) for steps in counters["input_complete"]] == [24, 24]
    assert [len(steps) for steps in counters["output"]] == [results, results]
    assert [len(steps) for steps in counters["output_complete"]] == [results, results]
    least, greatest, mean = training.getLatency()
    assert 0 < least <= mean <= greatest < 10
    compute = training.getComputeLatency()[2]
    parts = compute + training.getHostIpuLatency()[2] + training.getIpuHostLatency()[2]
    assert parts == pytest.approx(mean)


def test_micro_batches_are_computed_one_after_the_other_between_sending_and_returning(model):
    inference = poptorch.inferenceModel(model, poptorch.Options().deviceIterations(5))
    inference(batch(5)[0])
    counters = inference.getPerfCounters()
    (computed,), (sent,), (there,), (returned,) = (
        counters[name] for name in ("output", "input", "input_complete", "output_complete")
    )
    assert computed == sorted(set(computed))
    assert sent[0] <= there[0] < computed[0]
    assert computed[-1] <= returned[-1]
    assert inference.getHostIpuLatency()[0] >= 0
    least, greatest, _ = inference.getComputeLatency()
    assert 0 < least < greatest


def test_anchored_tensors_do_not_disturb_the_counters(model):
    chosen = options(iterations=2, accumulation=2)
    chosen.anchorTensor("gradient", "Gradient___fc1.weight")
    training = poptorch.trainingModel(model, chosen)
    training(*batch(4))
    assert [len(steps) for steps in training.getPerfCounters()["output"]] == [1, 1]


def test_synthetic_inputs_have_no_times(model):
    inference = poptorch.inferenceModel(model, poptorch.Options().enableSyntheticData(True))
    inference(batch(1)[0])
    assert inference.getPerfCounters() == {
        "input": [[]],
        "input_complete": [[]],
        "output": [[]],
        "output_complete": [[]],
    }
    assert inference.getLatency() == (0.0, 0.0, 0.0)


# Operations


def test_the_operations_can_be_listed(model):
    inference = poptorch.inferenceModel(model)
    with pytest.raises(poptorch.Error, match="has not been compiled"):
        inference._debugGetPopartIR()
    inference.compile(batch(1)[0])
    operations = json.loads(inference._debugGetPopartIR())["maingraph"]
    assert [each["type"] for each in operations if "addmm" in each["name"]] == ["aten.addmm.default"] * 2
    assert all(set(each) == {"name", "type", "inputs", "outputs"} for each in operations)


def test_anchors_are_part_of_a_saved_program(model, tmp_path):
    file = tmp_path / "model.poptorch"
    chosen = poptorch.Options()
    chosen.anchorTensor("hidden", "relu")
    x, _ = batch(4)
    poptorch.inferenceModel(model, chosen).compileAndExport(file, x)
    loaded = poptorch.load(file)
    assert torch.equal(loaded(x), model(x))
    assert torch.equal(loaded.getAnchoredTensor("hidden"), torch.relu(model.fc1(x)))
    with pytest.raises(poptorch.Error, match="anchored_tensors from"):
        poptorch.inferenceModel(model).loadExecutable(file)


def test_the_check_for_exceptions_is_part_of_a_saved_program(tmp_path):
    file = tmp_path / "model.poptorch"
    chosen = poptorch.Options()
    chosen.Precision.enableFloatingPointExceptions(True)
    poptorch.inferenceModel(torch.log, chosen).compileAndExport(file, torch.ones(2))
    loaded = poptorch.load(file)
    assert loaded(torch.ones(2)).tolist() == [0.0, 0.0]
    with pytest.raises(poptorch.Error, match="Floating point exception"):
        loaded(torch.zeros(2))
    with pytest.raises(poptorch.Error, match="enableFloatingPointExceptions from True to False"):
        poptorch.load(file, edit_opts_fn=lambda options: options.Precision.enableFloatingPointExceptions(False))
