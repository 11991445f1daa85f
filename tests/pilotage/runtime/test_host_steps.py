"""Optimizers that are stepped on the host although a program trains their parameters."""

from __future__ import annotations

import gc

import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks

import pilotage

X, TARGET = torch.ones(4, 3), torch.zeros(4, 2)


def trained(warned, module=None, optimizer=None):
    module = module or nn.Linear(3, 2)
    optimizer = optimizer or torch.optim.SGD(module.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer, loss=nn.MSELoss(), listeners=[warned], tier="graph")
    return step, optimizer


def reports(warned):
    return [message for message in warned.messages if "has no effect" in message]


def test_a_step_of_the_given_optimizer_is_reported_once_with_its_line(warned, line_of):
    step, optimizer = trained(warned)
    for _ in range(4):
        step(X, TARGET)
        optimizer.step()  # of no use
    (report,) = reports(warned)
    assert report.startswith(f"SGD.step() at {line_of('of no use')} has no effect: each call")
    assert "Leave out optimizer.step()" in report


def test_a_step_of_another_optimizer_is_reported_by_name(warned, line_of):
    step, _ = trained(warned)
    adam = torch.optim.Adam(step.module.parameters())
    for _ in range(4):
        step(X, TARGET)
        adam.step()  # trains nothing
    (report,) = reports(warned)
    assert f"Adam.step() at {line_of('trains nothing')}" in report
    assert "with the SGD that it was given" in report
    assert "set_optimizer()" in report


def test_each_of_several_optimizers_is_reported_once(warned):
    step, _ = trained(warned)
    others = [torch.optim.Adam(step.module.parameters()), torch.optim.RMSprop([step.module.bias])]
    for _ in range(3):
        step(X, TARGET)
        for other in others:
            other.step()
    assert [report.split(".")[0] for report in reports(warned)] == ["Adam", "RMSprop"]


def test_an_optimizer_of_another_module_is_not_reported(warned):
    step, _ = trained(warned)
    other = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    for _ in range(3):
        step(X, TARGET)
        nn.functional.mse_loss(other(X), TARGET).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert not reports(warned)


def test_host_training_while_the_program_is_not_attached_is_not_reported(warned):
    step, optimizer = trained(warned)
    for _ in range(2):
        nn.functional.mse_loss(step.module(X), TARGET).backward()
        optimizer.step()
        optimizer.zero_grad()
        step(X, TARGET)
        step.detach()
    step.destroy()
    optimizer.step()
    assert not reports(warned)


def test_host_training_whose_weights_are_sent_is_not_reported(warned):
    step, _ = trained(warned)
    host = torch.optim.SGD(step.module.parameters(), lr=0.1)
    for _ in range(3):
        step(X, TARGET)
        nn.functional.mse_loss(step.module(X), TARGET).backward()
        host.step()
        host.zero_grad()
        step._executor.send_weights()
    assert not reports(warned)


def test_a_step_does_not_change_what_is_trained(twins, eager, assert_same_state, warned):
    class Regression(nn.Linear):
        def forward(self, x, target):
            output = super().forward(x)
            return output, nn.functional.mse_loss(output, target)

    mine, theirs = twins(lambda: Regression(3, 2))
    optimizer, other = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (mine, theirs))
    step, reference = pilotage.training(mine, optimizer, tier="graph", listeners=[warned]), eager(theirs, other)
    for _ in range(3):
        step(X, TARGET)
        optimizer.step()
        reference(X, TARGET)
    assert_same_state(mine, theirs)


def test_torchs_hooks_are_removed_when_no_program_trains(warned):
    gc.collect()
    first, _ = trained(warned)
    second, _ = trained(warned)
    first(X, TARGET)
    second(X, TARGET)
    first.detach()
    assert len(own_hooks()) == 1
    second.destroy()
    assert not own_hooks()


def own_hooks():
    return [hook for hook in _global_optimizer_post_hooks.values() if hook.__module__ == "pilotage.runtime.host_steps"]


def test_two_models_with_shared_parameters_are_not_reported(warned):
    # As in a GAN: the generator is trained through the discriminator, which a second program trains.
    generator, discriminator = nn.Linear(3, 2), nn.Linear(2, 2)
    both = nn.Sequential(generator, discriminator)
    first, of_generator = trained(warned, both, torch.optim.SGD(generator.parameters(), lr=0.1))
    second, of_discriminator = trained(warned, discriminator, torch.optim.SGD(discriminator.parameters(), lr=0.1))
    for _ in range(3):
        first(X, TARGET)
        second(torch.ones(4, 2), TARGET)
    assert not reports(warned)
    of_generator.step()
    of_discriminator.step()
    first(X, TARGET)
    second(torch.ones(4, 2), TARGET)
    # Each program names its own optimizer only.
    assert [report.partition("has no effect: ")[2][:9] for report in reports(warned)] == ["each call"] * 2
