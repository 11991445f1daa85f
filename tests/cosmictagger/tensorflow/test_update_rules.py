"""Rules are those of torch's optimizers, with their numbers, or they are refused."""

import pytest
import tensorflow as tf
import torch

from cosmictagger.configuration.choices import OptimizerKind
from cosmictagger.errors import DeviceError
from cosmictagger.tensorflow.update_rules import Adam, rule_of
from cosmictagger.training.optimizer import build_optimizer


def parameters():
    return [torch.nn.Parameter(torch.zeros(3))]


def test_a_rule_has_the_numbers_of_its_optimizer():
    found = rule_of(torch.optim.Adam(parameters(), betas=(0.8, 0.9), eps=1e-6))
    assert found == Adam(betas=(0.8, 0.9), epsilon=1e-6)
    assert found.numbers(1e-3, 1) == pytest.approx((1e-3 / 0.2, 0.1**0.5))


def test_the_first_change_of_adam_is_the_rate_whatever_the_size_of_the_gradient():
    rule = Adam(betas=(0.9, 0.999), epsilon=1e-8)
    gradient = tf.constant([1e-3, -10.0, 0.0])
    zeros = tf.zeros_like(gradient)
    change, _ = rule.change(gradient, (zeros, zeros), tf.constant(rule.numbers(1e-4, 1)))
    assert change.numpy().tolist() == pytest.approx([1e-4, -1e-4, 0.0], rel=1e-3)


def test_an_optimizer_that_tensorflow_does_not_have_here_is_named():
    with pytest.raises(DeviceError, match=r"no Lamb\. Use mode.optimizer.name=adam"):
        rule_of(build_optimizer(OptimizerKind.lamb, parameters(), 1.0))
    with pytest.raises(DeviceError, match="no Adamax"):
        rule_of(torch.optim.Adamax(parameters()))


def test_an_option_that_changes_the_rule_is_named():
    with pytest.raises(DeviceError, match=r"no weight_decay=0\.1 of Adam"):
        rule_of(torch.optim.Adam(parameters(), weight_decay=0.1))
