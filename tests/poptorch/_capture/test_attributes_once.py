"""What forward does to Python attributes happens once, when the model is captured."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch


class Changing(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.i = torch.zeros(2)
        self.count, self.seen = 0, []
        self.change = change

    def forward(self, x):
        return self.change(self, x)


def add_in_place(self, x):
    self.i += 1
    return x + self.i


def replace(self, x):
    self.i = self.i + 1
    return x + self.i


def count(self, x):
    self.count += 1
    self.seen.append(self.count)
    return x + self.count + 0 * len(self.seen)


@pytest.mark.parametrize("change", [add_in_place, replace, count])
def test_the_program_continues_with_the_captured_constant(change, caplog):
    # Several runs of forward in one call: the comparison with eager PyTorch has to know the rule as well.
    model = poptorch.inferenceModel(Changing(change), poptorch.Options().deviceIterations(3).runOn("cpu", tier="graph"))
    for _ in range(2):
        assert model(torch.zeros(3, 2)).tolist() == [[1.0, 1.0]] * 3
    assert caplog.text.count("of Changing") == len([line for line in caplog.messages if "forward runs once" in line])
    assert "forward runs once, at capture" in caplog.text


def test_a_tensor_attribute_changed_in_place_shows_the_change_of_the_capture():
    module = Changing(add_in_place)
    model = poptorch.inferenceModel(module)
    for _ in range(2):
        model(torch.zeros(1, 2))
    assert module.i.tolist() == [1.0, 1.0]


def test_a_forward_without_inputs_returns_its_constant():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.i = torch.tensor([0.0])

        def forward(self):
            self.i += 1
            return self.i

    module = Counter()
    model = poptorch.inferenceModel(module)
    with pytest.warns(UserWarning, match="Output expected to be on the IPU but is on cpu"):
        assert model().tolist() == [1.0]
    assert (model().tolist(), module.i.tolist()) == ([1.0], [1.0])


def test_training_continues_with_the_constant():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.scale = torch.ones(1)

        def forward(self, x):
            self.scale *= 2
            return nn.functional.mse_loss(self.layer(x) * self.scale, x)

    torch.manual_seed(0)
    module = Scaled()
    twin = nn.Linear(2, 2)
    twin.load_state_dict(module.layer.state_dict())
    options = poptorch.Options().deviceIterations(2)
    model = poptorch.trainingModel(module, options, poptorch.optim.SGD(module.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    x = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    for _ in range(2):
        model(x)
        for part in x.split(1):
            optimizer.zero_grad()
            nn.functional.mse_loss(twin(part) * 2, part).backward()
            optimizer.step()
    torch.testing.assert_close(module.layer.weight, twin.weight)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda self, x: self.i.copy_(x[0]), "a value of the program"),
        (lambda self, x: self.i[:1].add_(1), "through a view"),
        (lambda self, x: (x + self.i, self.i.add_(1)), "after the program has read it"),
    ],
)
def test_a_write_that_cannot_happen_once_is_refused(change, name):
    module = Changing(change)
    with pytest.raises(poptorch.Error, match="attribute 'i' of Changing"):
        poptorch.inferenceModel(module)(torch.zeros(1, 2))
    assert module.i.tolist() == [0.0, 0.0]


SURROUNDINGS = torch.zeros(2)


def test_a_write_to_another_tensor_happens_once_with_a_warning(caplog):
    class Outside(nn.Module):
        def forward(self, x):
            SURROUNDINGS.add_(1)
            return x + SURROUNDINGS

    model = poptorch.inferenceModel(Outside(), poptorch.Options().check("off"))
    for _ in range(2):
        assert model(torch.zeros(1, 2)).tolist() == [[1.0, 1.0]]
    assert SURROUNDINGS.tolist() == [1.0, 1.0]
    assert "forward writes into a tensor that is neither" in caplog.text


def test_a_failed_capture_leaves_the_attributes_as_they_were():
    def fail(self, x):
        self.i += 1
        raise ValueError("no luck")

    module = Changing(fail)
    with pytest.raises(ValueError, match="no luck"):
        poptorch.inferenceModel(module)(torch.zeros(1, 2))
    assert module.i.tolist() == [0.0, 0.0]


def test_plain_tensors_and_parameters_may_be_moved_to_where_they_are(tier):
    class Moving(nn.Module):
        def __init__(self):
            super().__init__()
            self.p, self.mask = nn.Parameter(torch.ones(2)), torch.tensor([1.0, 0.0])

        def forward(self, x):
            self.p = self.p.to(x.device)
            self.mask = self.mask.to(x.dtype)
            self.loss_fct = nn.CrossEntropyLoss()
            return x * self.p * self.mask

    model = poptorch.inferenceModel(Moving(), poptorch.Options().runOn("cpu", tier=tier))
    for _ in range(2):
        assert model(torch.full((1, 2), 3.0, dtype=torch.half)).tolist() == [[3.0, 0.0]]
