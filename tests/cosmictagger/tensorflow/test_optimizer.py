"""Variables updated as a torch optimizer updates its parameters, with its files."""

import numpy as np
import pytest
import tensorflow as tf
import torch

from cosmictagger.configuration.choices import OptimizerKind
from cosmictagger.tensorflow.layout import to_tensorflow, to_torch
from cosmictagger.tensorflow.optimizer import VariableOptimizer
from cosmictagger.training.optimizer import build_optimizer, set_rate

KINDS = [kind for kind in OptimizerKind if kind.name not in ("lamb", "lars")]
SHAPES = {"kernel": (3, 2, 5, 5), "bias": (3,)}


def parameters():
    generator = torch.Generator().manual_seed(1)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES.values()]


def gradients(step):
    generator = torch.Generator().manual_seed(10 + step)
    # The bias has no gradient, like one that a normalisation cancels.
    return [torch.randn(SHAPES["kernel"], generator=generator) * 10.0 ** -(step % 5), torch.zeros(SHAPES["bias"])]


def torch_steps(optimizer, weights, steps):
    for step in steps:
        set_rate(optimizer, 1e-3 * (step + 1))
        for parameter, gradient in zip(weights, gradients(step), strict=True):
            parameter.grad = gradient
        optimizer.step()


def twin(kind):
    weights = parameters()
    variables = {name: tf.Variable(to_tensorflow(each)) for name, each in zip(SHAPES, weights, strict=True)}
    return variables, VariableOptimizer(build_optimizer(kind, weights, 1.0), variables)


def steps(optimizer, numbers):
    for step in numbers:
        optimizer.update([tf.constant(to_tensorflow(each)) for each in gradients(step)], 1e-3 * (step + 1))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_updates_and_stored_state_equal_those_of_torch(kind):
    weights = parameters()
    optimizer = build_optimizer(kind, weights, 1.0)
    torch_steps(optimizer, weights, range(7))
    variables, mine = twin(kind)
    steps(mine, range(7))
    for variable, parameter in zip(variables.values(), weights, strict=True):
        np.testing.assert_allclose(to_torch(variable.numpy()).numpy(), parameter.detach().numpy(), rtol=1e-5, atol=1e-6)
    wanted, found = optimizer.state_dict(), mine.state()
    assert found["param_groups"] == wanted["param_groups"]
    kept = {number: slots for number, slots in wanted["state"].items() if kind is not OptimizerKind.sgd}
    assert found["state"].keys() == kept.keys()
    for number, slots in kept.items():
        assert found["state"][number].keys() == slots.keys()
        for name, values in slots.items():
            torch.testing.assert_close(found["state"][number][name], values, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_optimizer_continues_from_the_state_of_torch(kind):
    weights = parameters()
    optimizer = build_optimizer(kind, weights, 1.0)
    torch_steps(optimizer, weights, range(3))
    variables, mine = twin(kind)
    for variable, parameter in zip(variables.values(), weights, strict=True):
        variable.assign(to_tensorflow(parameter))
    mine.restore(optimizer.state_dict())
    steps(mine, range(3, 6))
    torch_steps(optimizer, weights, range(3, 6))
    for variable, parameter in zip(variables.values(), weights, strict=True):
        np.testing.assert_allclose(to_torch(variable.numpy()).numpy(), parameter.detach().numpy(), rtol=1e-5, atol=1e-6)
