"""A host optimizer that is stepped while the program trains."""

from __future__ import annotations

import pytest
import torch

import poptorch

X, TARGET = torch.ones(4, 3), torch.zeros(4, 2)


@pytest.fixture
def reports(caplog):
    caplog.set_level("WARNING", "pilotage")
    return lambda: [record.getMessage() for record in caplog.records if "has no effect" in record.getMessage()]


def test_the_optimizer_of_a_ported_script_that_trains_nothing_is_named_once(regression, reports, train_with):
    # As in a published port: Adam is set up and stepped, and the model trains with the default of the wrapper.
    adam = torch.optim.Adam(regression.parameters(), lr=1e-3)
    train = train_with(regression)
    for _ in range(4):
        train(X, TARGET)
        adam.step()
    (report,) = reports()
    assert f"Adam.step() at {__file__}:" in report
    assert "with the SGD that it was given" in report
    assert "poptorch.trainingModel or setOptimizer" in report


def test_a_step_of_the_given_optimizer_without_gradients_gives_no_warning(regression, reports, train_with):
    optimizer = poptorch.optim.SGD(regression.parameters(), lr=0.1)
    train = train_with(regression, optimizer)
    for _ in range(3):
        train(X, TARGET)
        optimizer.step()
    assert not reports()


def test_an_optimizer_that_was_handed_over_is_not_reported(regression, reports, train_with):
    train = train_with(regression)
    optimizer = poptorch.optim.SGD(regression.parameters(), lr=0.1)
    train.setOptimizer(optimizer)
    for _ in range(3):
        train(X, TARGET)
        optimizer.step()
    assert not reports()


def test_host_training_that_is_copied_to_the_device_is_not_reported(regression, reports, train_with):
    host, train = torch.optim.SGD(regression.parameters(), lr=0.1), train_with(regression)
    for _ in range(3):
        train(X, TARGET)
        regression(X, TARGET)[1].backward()
        host.step()
        host.zero_grad()
        train.copyWeightsToDevice()
    assert not reports()


def test_host_training_that_is_not_copied_is_reported(regression, reports, train_with):
    host, train = torch.optim.SGD(regression.parameters(), lr=0.1), train_with(regression)
    train(X, TARGET)
    regression(X, TARGET)[1].backward()
    host.step()
    train(X, TARGET)
    assert len(reports()) == 1
    assert "copyWeightsToDevice()" in reports()[0]
