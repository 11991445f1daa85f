"""The outputs of a call, by output mode, device iterations, accumulation and replicas."""

from __future__ import annotations

import copy
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

import poptorch
from poptorch import CommGroupType, OutputMode

pytestmark = pytest.mark.slow

Pair = namedtuple("Pair", ["left", "right"])
MODES = [OutputMode.All, OutputMode.EveryN, OutputMode.Final, OutputMode.Sum, OutputMode.Default]


@dataclass
class Result:
    scores: torch.Tensor
    name: str


class Network(nn.Module):
    """Returns a batch, a number for the whole micro-batch, and in training its loss."""

    def __init__(self, trains):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)
        self.trains = trains

    def forward(self, x):
        out = self.layer(x)
        loss = functional.mse_loss(out, torch.zeros_like(out))
        return (out, x.sum(), loss) if self.trains else (out, x.sum())


@dataclass(frozen=True)
class Setting:
    mode: OutputMode
    period: int
    iterations: int
    accumulation: int
    replicas: int
    group: int
    grouping: CommGroupType
    size: int

    @property
    def parts(self):
        return self.iterations * self.accumulation * (self.replicas // self.group)

    def options(self):
        options = poptorch.Options().deviceIterations(self.iterations).replicationFactor(self.replicas)
        options.showCompilationProgressBar(False).inputReplicaGrouping(self.group, self.grouping)
        options.Training.gradientAccumulation(self.accumulation)
        return options if self.mode is OutputMode.Default else options.outputMode(self.mode, self.period)

    def group_of(self, replica):
        feeds = self.replicas // self.group
        return replica // self.group if self.grouping is CommGroupType.Consecutive else replica % feeds


@st.composite
def setting_of(draw, training):
    iterations = draw(st.integers(1, 4))
    replicas = draw(st.sampled_from([1, 2, 4]))
    return Setting(
        mode=draw(st.sampled_from(MODES)),
        period=draw(st.integers(1, iterations)),
        iterations=iterations,
        accumulation=draw(st.integers(1, 3)) if training else 1,
        replicas=replicas,
        group=draw(st.sampled_from([size for size in (1, 2, 4) if size <= replicas])),
        grouping=draw(st.sampled_from([CommGroupType.Consecutive, CommGroupType.Orthogonal])),
        size=draw(st.integers(1, 3)),
    )


def eager(module, setting, batch, training):
    """The outputs of each micro-batch by (iteration, accumulation, replica), in plain PyTorch."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    feeds = setting.replicas // setting.group
    chunks = batch.chunk(setting.parts)
    found = {}
    for iteration in range(setting.iterations):
        optimizer.zero_grad()
        for accumulation in range(setting.accumulation):
            for replica in range(setting.replicas):
                place = (iteration * setting.accumulation + accumulation) * feeds + setting.group_of(replica)
                outputs = module(chunks[place])
                if training:
                    outputs[-1].backward()
                found[iteration, accumulation, replica] = [each.detach() for each in outputs]
        if training:
            for parameter in module.parameters():
                parameter.grad /= setting.accumulation * setting.replicas
            optimizer.step()
    return found


def expected_outputs(setting, found, training):
    """The table of the modes, written out."""
    mode = setting.mode
    if mode is OutputMode.Default:
        mode = OutputMode.Final if training else OutputMode.All
    if mode is OutputMode.Sum:
        kept = [
            [sum(values) for values in zip(*(v for (_, _, r), v in found.items() if r == replica), strict=True)]
            for replica in range(setting.replicas)
        ]
    else:
        wanted = {
            OutputMode.All: lambda i, a: True,
            OutputMode.EveryN: lambda i, a: (i + 1) % setting.period == 0,
            OutputMode.Final: lambda i, a: (i, a) == (setting.iterations - 1, setting.accumulation - 1),
        }[mode]
        kept = [values for (i, a, _), values in sorted(found.items()) if wanted(i, a)]
    multiplier = {
        OutputMode.All: setting.iterations * setting.accumulation * setting.replicas,
        OutputMode.EveryN: setting.iterations // setting.period * setting.accumulation * setting.replicas,
        OutputMode.Final: setting.replicas,
        OutputMode.Sum: setting.replicas,
    }[mode]
    assert len(kept) == multiplier
    if multiplier == 1:
        return tuple(kept[0])
    return tuple(torch.stack(p) if p[0].dim() == 0 else torch.cat(p) for p in zip(*kept, strict=True))


def check(setting, training):
    module = Network(training)
    twin = copy.deepcopy(module)
    wrap = poptorch.trainingModel if training else poptorch.inferenceModel
    model = wrap(module, setting.options())
    torch.manual_seed(1)
    for _ in range(2):
        batch = torch.randn(setting.parts * setting.size, 3)
        expected = expected_outputs(setting, eager(twin, setting, batch, training), training)
        outputs = model(batch)
        assert [each.shape for each in outputs] == [each.shape for each in expected]
        torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-6)


@given(setting_of(training=False))
@settings(max_examples=40, deadline=None)
def test_inference_returns_what_its_mode_says(setting):
    check(setting, training=False)


@given(setting_of(training=True))
@settings(max_examples=40, deadline=None)
def test_training_returns_what_its_mode_says(setting):
    check(setting, training=True)


@pytest.mark.long
@pytest.mark.parametrize("grouping", [CommGroupType.Consecutive, CommGroupType.Orthogonal])
@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize(("training", "accumulation"), [(False, 1), (True, 1), (True, 2), (True, 3)])
@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("mode", MODES)
def test_every_combination_returns_what_its_mode_says(mode, iterations, accumulation, replicas, grouping, training):
    for group in {1, replicas // 2 or 1, replicas}:
        for period in {1, 2} if mode is OutputMode.EveryN and iterations > 1 else {1}:
            check(Setting(mode, period, iterations, accumulation, replicas, group, grouping, 2), training)


def test_output_mode_all_keeps_the_order_of_the_inputs():
    options = poptorch.Options().deviceIterations(2).replicationFactor(2)
    options.Training.gradientAccumulation(3)
    options.outputMode(OutputMode.All)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return x + 0.5, poptorch.identity_loss(self.weight, "sum")

    batch = torch.arange(24.0)
    assert torch.equal(poptorch.trainingModel(Model(), options)(batch)[0], batch + 0.5)


@pytest.mark.parametrize("mode", [OutputMode.All, OutputMode.Final, OutputMode.Sum])
@pytest.mark.parametrize(("iterations", "replicas"), [(1, 1), (3, 1), (1, 2), (3, 2)])
def test_a_scalar_output_becomes_a_vector_only_if_there_are_several(mode, iterations, replicas):
    options = poptorch.Options().deviceIterations(iterations).replicationFactor(replicas).outputMode(mode)
    result = poptorch.inferenceModel(lambda x: x.sum(), options)(torch.ones(iterations * replicas, 4))
    several = iterations * replicas if mode is OutputMode.All else replicas
    assert result.shape == (() if several == 1 else (several,))


@pytest.mark.parametrize("mode", [OutputMode.All, OutputMode.Final, OutputMode.Sum])
def test_a_constant_output_is_returned_once_in_the_eager_tier_too(mode):
    outside = torch.tensor([7.0, 8.0])
    options = poptorch.Options().deviceIterations(3).replicationFactor(2).outputMode(mode).runOn(tier="eager")
    varying, never_computed, made = poptorch.inferenceModel(lambda x: (x, outside, torch.ones(2)), options)(
        torch.ones(6, 1)
    )
    assert len(varying) == (6 if mode is OutputMode.All else 2)
    assert never_computed.tolist() == [7.0, 8.0]
    assert made.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("mode", [OutputMode.All, OutputMode.Final, OutputMode.Sum])
def test_a_constant_output_is_returned_once(mode):
    outside = torch.tensor([7.0, 8.0])
    options = poptorch.Options().deviceIterations(3).replicationFactor(2).outputMode(mode)
    model = poptorch.inferenceModel(lambda x: (x, outside, torch.ones(2)), options)
    with pytest.warns(UserWarning, match="Output expected to be on the IPU but is on cpu"):
        varying, never_on_the_device, made_on_it = model(torch.ones(6, 1))
    assert len(varying) == (6 if mode is OutputMode.All else 2)
    assert never_on_the_device.tolist() == [7.0, 8.0]
    assert made_on_it.tolist() == [1.0, 1.0]


# Structures

STRUCTURES = {
    "tensor": lambda x: x,
    "tuple": lambda x: (x, x + 1),
    "list": lambda x: [x, [x + 1]],
    "one in a tuple": lambda x: (x,),
    "dict": lambda x: {"b": x, "a": (x + 1,)},
    "ordered dict": lambda x: OrderedDict(b=x, a=x + 1),
    "named tuple": lambda x: Pair(x, [x + 1]),
    "data class": lambda x: Result(x, "scores"),
    "nested": lambda x: {"p": Pair({"x": x}, None), "l": [(x, 3, "word"), [], {}]},
    "nothing": lambda x: None,
    "no tensor": lambda x: (3, "word", None),
}


def same(actual, expected):
    assert type(actual) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert torch.equal(actual, expected)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        for key in expected:
            same(actual[key], expected[key])
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for one, another in zip(actual, expected, strict=True):
            same(one, another)
    elif isinstance(expected, Result):
        same(vars(actual), vars(expected))
    else:
        assert actual == expected


@pytest.mark.parametrize("kind", STRUCTURES)
def test_outputs_have_the_structure_that_forward_returned(kind):
    model = poptorch.inferenceModel(STRUCTURES[kind], poptorch.Options().deviceIterations(2))
    for batch in (torch.ones(4, 2), torch.zeros(4, 2)):
        same(model(batch), STRUCTURES[kind](batch))


class Ordinary(dict):
    """A dictionary with attributes, in the manner of the transformers library."""

    def __getattr__(self, name):
        return self[name]


def test_a_subclass_of_dict_comes_back_as_itself():
    result = poptorch.inferenceModel(lambda x: Ordinary(logits=x, loss=x.sum()))(torch.ones(2))
    assert type(result) is Ordinary
    assert result.logits.tolist() == [1.0, 1.0]
    assert result.loss.item() == 2.0


def test_outputs_do_not_share_memory_with_the_program():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x):
            self.count += 1
            return self.count, self.weight, x

    model = poptorch.inferenceModel(Counting())
    given = torch.zeros(2)
    first = model(given)
    for each in first:
        each.fill_(100.0)
    count, weight, passed = model(given)
    assert (count.tolist(), weight.tolist(), passed.tolist()) == ([2.0, 2.0], [1.0, 1.0], [0.0, 0.0])
    assert first[0].tolist() == [100.0, 100.0]
