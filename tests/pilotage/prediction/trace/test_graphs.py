import torch
from torch import nn

from pilotage.prediction.capturing.program import captured_for
from pilotage.prediction.trace.graphs import traced_steps
from pilotage.prediction.trace.operations import Category, Phase
from pilotage.program.graphs.forward_marks import keep_for_backward
from pilotage.program.program import Action


def test_a_training_step_has_forward_backward_and_update_with_modules_and_lines(subject_of):
    (step,) = traced_steps(captured_for(subject_of(), "card")).values()
    assert [each.phase for each in step.operations] == sorted(
        (each.phase for each in step.operations), key=list(Phase).index
    )
    products = [each for each in step.operations if each.name in ("aten.addmm", "aten.mm")]
    assert {each.module for each in products} == {f"layers.{place}" for place in range(4)}
    assert len(products) == 4 + 4 + 3
    assert all(each.line.rpartition(":")[0].endswith("conftest.py") for each in products)
    assert sum(each.work.flops for each in products) == 11 * 2 * 8 * 64 * 64


def test_state_inputs_and_activations_are_distinguished(subject_of):
    (step,) = traced_steps(captured_for(subject_of(), "card")).values()
    bytes_ = dict.fromkeys(Category, 0)
    for tensor in step.tensors:
        if tensor.first < 0:
            bytes_[tensor.category] += tensor.bytes
    weights = 4 * (64 * 64 + 64) * 4
    assert bytes_[Category.WEIGHTS] == weights
    assert 2 * weights <= bytes_[Category.OPTIMIZER] < 2 * weights + 100
    assert bytes_[Category.INPUTS] == 2 * 8 * 64 * 4
    kept = [each for each in step.tensors if each.category is Category.ACTIVATIONS and each.bytes == 8 * 64 * 4]
    assert len(kept) >= 4
    assert all(0 <= each.first < each.last < len(step.operations) for each in kept)


def test_accumulation_has_two_steps_and_pools(subject_of):
    inputs = [torch.zeros(2, 64), torch.zeros(2, 64)]
    steps = traced_steps(captured_for(subject_of(inputs=inputs, gradient_accumulation=4), "card"))
    assert list(steps) == [Action.ACCUMULATE, Action.UPDATE]
    assert all(each.phase is Phase.UPDATE for each in steps[Action.UPDATE].operations)
    pools = [
        each for each in steps[Action.ACCUMULATE].tensors if each.is_stored and each.category is Category.GRADIENTS
    ]
    assert sum(each.bytes for each in pools) == 4 * (64 * 64 + 64) * 4


def test_a_value_dies_after_the_last_use_of_its_views(subject_of):
    class Viewed(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(16))

        def forward(self, x):
            y = x * self.weight
            z = y.view(2, -1)
            return (y.sum() + z.exp().sum()).sum()

    subject = subject_of(Viewed(), [torch.zeros(4, 16)], optimizer=None)
    (step,) = traced_steps(captured_for(subject, "card")).values()
    product = next(each for each in step.tensors if each.name == "mul")
    exponential = next(i for i, each in enumerate(step.operations) if each.name == "aten.exp")
    assert product.last == exponential


def test_inference_has_only_forward(subject_of):
    (step,) = traced_steps(captured_for(subject_of(optimizer=None), "ipu")).values()
    assert {each.phase for each in step.operations} == {Phase.FORWARD}


def test_a_recomputed_result_is_held_until_the_last_one_of_its_operation_is_taken(subject_of):
    class Kept(nn.Module):
        """Backward recomputes the normalisation for its result, and takes its statistics later."""

        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64)) for _ in range(2)
            )

        def forward(self, x, target):
            for block in self.blocks:
                x = block(x)
                keep_for_backward(x)
            return nn.functional.mse_loss(x, target)

    (step,) = traced_steps(captured_for(subject_of(Kept()), "card")).values()
    normalized = [each for each in step.tensors if each.held >= 0 and each.bytes == 8 * 64 * 4]
    assert any(each.held > each.last for each in normalized)
