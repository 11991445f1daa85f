"""Warnings about optimizers."""

from __future__ import annotations

import logging

import pytest

import poptorch
from poptorch import optim

pytestmark = pytest.mark.slow


class OwnStep(optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("is not run")


def test_a_custom_optimizer_gives_one_warning(warnings_of_poptorch, network, batch, training):
    module = network()
    optimizer = OwnStep(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    for _ in range(3):
        model.setOptimizer(optimizer)
        model(*batch)
    (said,) = warnings_of_poptorch()
    assert "Poptorch does not run Python optimizer code directly" in said


def test_each_unexpected_attribute_gives_one_warning(warnings_of_poptorch, network, training):
    module = network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    optimizer.param_groups[0]["loss_scaling"] = 2.0
    optimizer.wings = 2
    optimizer.defaults["feathers"] = 3
    for _ in range(3):
        model.setOptimizer(optimizer)
    assert sorted(warnings_of_poptorch()) == [
        "Ignoring unexpected default group variable in SGD2 optimizer: ['feathers']",
        "Ignoring unexpected group 0 attribute in SGD2 optimizer: ['loss_scaling']",
        "Ignoring unexpected optimizer attribute in SGD2 optimizer: ['wings']",
    ]


def test_relaxed_checks_log_at_debug_level(caplog, network, training):
    caplog.set_level(logging.DEBUG, "poptorch::python")
    module = network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    model = training(module, optimizer, poptorch.Options().relaxOptimizerAttributesChecks())
    optimizer.wings = 2
    model.setOptimizer(optimizer)
    (record,) = [each for each in caplog.records if "wings" in each.getMessage()]
    assert record.levelno == logging.DEBUG
