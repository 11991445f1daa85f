"""Our networks against values that the original computed from the same weights and events."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from cosmictagger.configuration.choices import LossBalanceScheme, OptimizerKind
from cosmictagger.configuration.network import PRESETS
from cosmictagger.data.events import Batch
from cosmictagger.devices.eager import EagerExecutor
from cosmictagger.networks.uresnet import UResNet, stack_planes
from cosmictagger.records.checkpoints import Checkpoints, load
from cosmictagger.records.original_files import in_order, original_names, our_name, parameter_names, schedule_fields
from cosmictagger.training.loss import BalancedLoss
from cosmictagger.training.metrics import KEYS
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NumberTypes
from cosmictagger.training.step import EvaluationStep, TrainingStep

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

every_network = pytest.mark.parametrize("case", ["a21_depth3", "uresnet_depth3", "uresnet3d_depth3"], indirect=True)
long = pytest.mark.long
mostly_long = pytest.mark.parametrize(
    "case",
    ["a21_depth3", pytest.param("uresnet_depth3", marks=long), pytest.param("uresnet3d_depth3", marks=long)],
    indirect=True,
)
NARROW, WIDE = torch.float32, torch.float64
MOST = 2.0
"""The tolerance in float32: this many times the original's own distance from float64."""

ROUNDING = 1e-4
"""What rounding in float32 changes in the losses of a few small steps; moments in another order change them more."""


def statistics(planes, positions, weights):
    """What the reference knows about outputs: means, rms, extremes, a sum that depends on positions, four pixels."""
    rows = []
    for plane in planes:
        values = plane.detach().double()
        check = float(values.flatten() @ weights) / math.sqrt(values.numel() / 3)
        some = [float(values[tuple(place)]) for place in positions]
        means = values.mean((0, 2, 3)).tolist()
        rms = float(values.square().mean().sqrt())
        rows.append([*means, rms, float(values.min()), float(values.max()), check, *some])
    return np.array(rows)


def reference_statistics(outputs, count):
    rows = [
        [*each["mean_per_class"], *(each[name] for name in ("rms", "min", "max")), each["check"] / math.sqrt(count / 3)]
        + each["samples"]
        for each in outputs
    ]
    return np.array(rows)


class Comparison:
    """Distances from the reference, in units of a plane's rms."""

    def __init__(self, reference, events, hashed):
        self.positions = reference["recipe"]["samples"]["positions_event_class_row_column"]
        self.count = events[0].numel()
        self.weights = torch.from_numpy(hashed("check", self.count))

    def errors(self, planes, wanted):
        return self._errors(statistics(planes, self.positions, self.weights), wanted)

    def between(self, given, wanted):
        return self._errors(reference_statistics(given, self.count), wanted)

    def _errors(self, found, wanted):
        truth = reference_statistics(wanted, self.count)
        return np.abs(found - truth) / truth[:, 3:4]


@pytest.fixture(scope="module")
def comparison(reference, events, hashed):
    return Comparison(reference, events, hashed)


def test_the_formula_gives_the_examples_of_the_reference(reference, hashed):
    for name, values in reference["recipe"]["examples_of_u"].items():
        assert hashed(name, 3).tolist() == pytest.approx(values, rel=1e-12)


@every_network
def test_parameters_have_the_originals_order_names_and_shapes(case):
    network = UResNet(case.options)
    named = [(name, list(each.shape)) for name, each in network.named_parameters()]
    assert named == [(our_name(name), shape) for _, name, shape, *_ in case.values["parameters"]]
    assert [name for name in original_names(network.state_dict()) if name in case.weights] == case.names


def test_small_networks_have_the_originals_order_and_names(reference):
    for key, preset in (("uresnet_depth2_concat", "uresnet"), ("uresnet3d_depth2", "uresnet3d")):
        example = reference["order_examples"][key]
        network = UResNet(replace(PRESETS[preset], **example["changed_fields"]))
        theirs = [row[1] for row in example["rows"]]
        assert [name for name, _ in network.named_parameters()] == [our_name(name) for name in theirs]
        assert parameter_names(original_names(network.state_dict())) == theirs


@mostly_long
def test_float64_gives_the_originals_outputs_losses_gradients_and_statistics(case, events, comparison):
    image, label = events[0].double(), events[1]
    wanted, network = case.values["float64"], case.network(WIDE)
    with torch.no_grad():
        network.eval()
        assert comparison.errors(network(image), wanted["eval_outputs"]).max() < 1e-9
        _, metrics, _ = EvaluationStep(network, LossBalanceScheme.focal)(image, label)
        assert dict(zip(KEYS, metrics.tolist(), strict=True)) == pytest.approx(wanted["eval_metrics"], abs=1e-6)
    network.train()
    scores = network.stacked(image)
    planes = scores.chunk(3)
    assert comparison.errors(planes, wanted["train_outputs"]).max() < 1e-9
    for name, (mean, variance) in wanted["running_after_one_train_forward"].items():
        norm = network.get_submodule(our_name(name))
        found = norm.running_mean.mean().item(), norm.running_var.mean().item()
        assert found == pytest.approx((mean, variance), rel=1e-8, abs=1e-9)
    for name, count in wanted["num_batches_tracked_after_one_train_forward"].items():
        assert int(network.get_buffer(our_name(name))) == count
    labels = stack_planes(label)[:, 0]
    for name, value in wanted["train_losses"].items():
        loss = BalancedLoss(LossBalanceScheme[name])(scores, labels)
        assert loss.item() == pytest.approx(value, rel=1e-9)
        if name == "focal":
            loss.backward(retain_graph=True)
    for (_, parameter), (*_, norm, _) in zip(network.named_parameters(), case.values["parameters"], strict=True):
        if norm != "zero":
            assert parameter.grad.norm().item() == pytest.approx(norm, rel=1e-7)


@every_network
def test_float32_outputs_are_at_most_twice_as_far_off_as_the_originals(case, events, comparison):
    network = case.network(NARROW).train()
    with torch.no_grad():
        found = comparison.errors(network(events[0]), case.values["float64"]["train_outputs"])
    original = comparison.between(case.values["float32"]["train_outputs"], case.values["float64"]["train_outputs"])
    for size in (lambda each: each.max(), lambda each: np.sqrt((each**2).mean())):
        assert size(found) <= MOST * size(original)


def losses(case, events, kind, rate, steps, optimizer=OptimizerKind.adam):
    step = TrainingStep(case.network(kind), LossBalanceScheme.focal).train()
    updates = build_optimizer(optimizer, step.network.parameters(), rate)
    found = []
    for _ in range(steps):
        updates.zero_grad()
        _, loss = step(events[0].to(kind), events[1])
        loss.backward()
        updates.step()
        found.append(loss.item())
    return found


@pytest.mark.long
@every_network
def test_twenty_steps_of_adam_follow_the_originals_losses(case, events):
    """At the small rate rounding does not grow, so float32 follows the original's float64."""
    wanted = case.values["float64"]["adam_small_rate_losses"]
    assert losses(case, events, NARROW, 1e-5, 20) == pytest.approx(wanted, rel=ROUNDING)
    assert losses(case, events, WIDE, 1e-5, 20) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.long
@every_network
def test_larger_steps_follow_the_originals_as_long_as_it_repeats_itself(case, events):
    stray = case.values["original_strays_from_itself"]["adam"]
    known = min(next((number for number, each in enumerate(stray) if each > 1e-8), len(stray)), 3)
    found = losses(case, events, WIDE, 1e-3, known)
    assert found == pytest.approx(case.values["float64"]["adam_losses"][:known], rel=1e-6)
    found = losses(case, events, WIDE, 1e-3, 2, OptimizerKind.rmsprop)
    assert found == pytest.approx(case.values["float64"]["rmsprop_losses"][:2], rel=1e-6)


class Original:
    """The original's training loop on a plain network, with its names, its optimizer and its files."""

    def __init__(self, case, plain_network):
        self.network = UResNet(case.options)
        self.network.load_state_dict({our_name(name): each for name, each in case.weights.items()}, strict=False)
        self.network.train()
        self.plain = plain_network(self.network, case.options)
        self.optimizer = torch.optim.Adam(self.network.parameters(), 1.0)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: np.float64(1e-5))
        self.steps = 0

    def train(self, image, label):
        self.optimizer.zero_grad()
        loss = focal_loss(self.plain(image), label)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.steps += 1
        return loss.item()

    def save(self, path):
        """A file as the original writes it, in a distributed run."""
        names = original_names(self.network.state_dict())
        state = {
            "global_step": self.steps,
            "state_dict": {f"module.{name}": each for name, each in names.items()},
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.schedule.state_dict(),
        }
        torch.save(state, path)

    def load(self, path):
        """As the original does: its names, positions of its optimizer, fields of its schedule."""
        state = torch.load(path, weights_only=True)
        wanted = list(original_names(self.network.state_dict()))
        assert list(state["state_dict"]) == wanted
        self.network.load_state_dict({our_name(name): each for name, each in state["state_dict"].items()})
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["scheduler"])
        self.steps = state["global_step"]


def focal_loss(planes, labels):
    total = 0
    for scores, label in zip(planes, labels.long().unbind(1), strict=True):
        entropy = F.cross_entropy(scores, label, reduction="none")
        weights = (1 - scores.detach().softmax(1).gather(1, label.unsqueeze(1))[:, 0]).square()
        total = total + (weights * entropy).sum() / weights.sum()
    return total


@mostly_long
def test_training_continues_from_a_file_of_the_original_and_back(case, events, plain_network, tmp_path):
    wanted = case.values["float64"]["adam_small_rate_losses"]
    original = Original(case, plain_network)
    assert [original.train(*events) for _ in range(3)] == pytest.approx(wanted[:3], rel=ROUNDING)
    original.save(tmp_path / "model-3.ckpt")

    network = case.network(NARROW)
    optimizer = build_optimizer(OptimizerKind.adam, network.parameters(), 1e-5)
    numbers = NumberTypes(activations=NARROW)
    executor = EagerExecutor(network, optimizer, LossBalanceScheme.focal, numbers, torch.device("cpu"))
    state = load(tmp_path / "model-3.ckpt")
    names = parameter_names(state["state_dict"])
    optimizer_state = in_order(state["optimizer"], names, dict(network.named_parameters()))
    executor.restore({**state, "optimizer": optimizer_state})
    batch = Batch(events[0].numpy(), events[1].numpy(), np.arange(2), np.zeros((2, 3)))
    assert [executor.train([batch], 1e-5).loss for _ in range(2)] == pytest.approx(wanted[3:5], rel=ROUNDING)

    step = {"global_step": 5, "scheduler": schedule_fields(5, 1e-5), **executor.state()}
    path = Checkpoints(tmp_path / "ours").save(5, step)
    again = Original(case, plain_network)
    again.load(path)
    assert (again.steps, again.schedule.last_epoch) == (5, 5)
    assert [again.train(*events) for _ in range(2)] == pytest.approx(wanted[5:7], rel=ROUNDING)
