"""Data-dependent code is refused with the user's line, and a failed capture leaves the module unchanged."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import CaptureError, DataDependentError


class Network(nn.Module):
    """A layer and a loss, with something in between."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.dropout = nn.Dropout()

    def between(self, x):
        return x

    def forward(self, x):
        return functional.mse_loss(self.between(self.dropout(self.norm(self.layer(x)))), torch.zeros(x.shape[0], 3))


class Item(Network):
    def between(self, x):
        return x * x.sum().item()  # item


class Branch(Network):
    def between(self, x):
        if x.sum() > 0:  # branch
            return x
        return -x


class Number(Network):
    def between(self, x):
        return x * float(x.mean())  # float


class Loop(Network):
    def between(self, x):
        for _ in range(int(x.abs().sum())):  # loop
            x = x + 1
        return x


class ToList(Network):
    def between(self, x):
        return x * sum(x[0].tolist())  # tolist


class Mask(Network):
    def between(self, x):
        return x * x[x > 0].mean()  # mask


class NonZero(Network):
    def between(self, x):
        return x * x.nonzero().sum()  # nonzero


class Unique(Network):
    def between(self, x):
        return x * x.detach().unique().sum()  # unique


class Select(Network):
    def between(self, x):
        return x * torch.masked_select(x, x > 0).sum()  # select


class Packed(Network):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(1, 1, batch_first=True)

    def between(self, x):
        lengths = (x > 0).sum(dim=1).clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(  # packed
            x[..., None], lengths, batch_first=True, enforce_sorted=False
        )
        return x * self.recurrent(packed)[1].sum()


class Numpy(Network):
    def between(self, x):
        return x * x.detach().numpy().mean()  # numpy


class InsideATorchModule(Network):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.AdaptiveLogSoftmaxWithLoss(3, 5, cutoffs=[2], div_value=1.0)

    def between(self, x):
        return x + self.inner(x, torch.arange(5)).loss  # inner


DATA_DEPENDENT = {
    "item": Item,
    "branch": Branch,
    "float": Number,
    "loop": Loop,
    "tolist": ToList,
    "mask": Mask,
    "nonzero": NonZero,
    "unique": Unique,
    "select": Select,
    "packed": Packed,
    "numpy": Numpy,
    "inner": InsideATorchModule,
}


def capture(module, **options):
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), **options)
    step.compile(torch.randn(5, 4))
    return step


@pytest.mark.parametrize("where", DATA_DEPENDENT)
def test_data_dependent_code_is_refused_with_its_line(where, line_of):
    with pytest.raises(DataDependentError, match=re.escape(f"at {line_of(where)} in ")):
        capture(DATA_DEPENDENT[where]())


def test_data_dependent_code_is_refused_in_inference_too(line_of):
    with pytest.raises(DataDependentError, match=re.escape(f"at {line_of('mask')} in between: return x * x[x > 0]")):
        pilotage.inference(Mask())(torch.randn(5, 4))


@pytest.mark.parametrize("where", sorted(set(DATA_DEPENDENT) - {"packed"}))
def test_the_eager_tier_runs_data_dependent_code(where, eager, twins, assert_same_state):
    mine, theirs = twins(DATA_DEPENDENT[where])
    for module in (mine, theirs):
        module.dropout.p = 0.0
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.01), tier="eager")
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.01)
    for _ in range(2):
        batch = torch.randn(5, 4)
        step(batch)
        optimizer.zero_grad()
        theirs(batch).backward()
        optimizer.step()
    assert_same_state(mine, theirs)


def test_an_operation_without_a_known_shape_is_refused_with_the_remedy(line_of):
    @torch.library.custom_op("pilotage_tests::opaque", mutates_args=())
    def opaque(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    class Opaque(Network):
        def between(self, x):
            return x + opaque(x.detach())  # opaque

    with pytest.raises(
        CaptureError, match=r"pilotage_tests::opaque.*register_fake(?s:.*)" + re.escape(line_of("opaque"))
    ):
        capture(Opaque())


def test_user_errors_are_raised_unchanged():
    class Wrong(Network):
        def between(self, x):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        capture(Wrong())


def test_shape_errors_of_torch_are_raised_unchanged():
    with pytest.raises(RuntimeError, match=r"must have same reduction dim|shapes cannot be multiplied"):
        pilotage.inference(nn.Linear(3, 2))(torch.randn(5, 4))


FAILING = {name: DATA_DEPENDENT[name] for name in ("item", "mask", "numpy", "inner")}


@pytest.mark.parametrize("kind", [*FAILING, "fine"])
def test_capture_leaves_the_module_unchanged_whether_it_succeeds_or_not(kind, fake_tensors, assert_equal):
    torch.manual_seed(0)
    module = FAILING.get(kind, Network)()
    module.norm.eval()
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    identities = {name: id(tensor) for name, tensor in module.state_dict(keep_vars=True).items()}
    modes = {name: part.training for name, part in module.named_modules()}
    attributes = {name: set(vars(part)) for name, part in module.named_modules()}
    random = torch.get_rng_state()

    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1))
    if kind in FAILING:
        with pytest.raises(DataDependentError):
            step.compile(torch.randn(5, 4, generator=torch.Generator()))
    else:
        step.compile(torch.randn(5, 4, generator=torch.Generator()))

    assert fake_tensors(module) == []
    assert_equal(torch.get_rng_state(), random)
    assert {name: part.training for name, part in module.named_modules()} == modes
    assert {name: set(vars(part)) for name, part in module.named_modules()} == attributes
    assert {name: id(tensor) for name, tensor in module.state_dict(keep_vars=True).items()} == identities
    assert_equal(dict(module.state_dict()), state)
    assert all(type(parameter) is nn.Parameter and parameter.grad is None for parameter in module.parameters())
    module(torch.randn(5, 4)) if kind != "inner" else None


def test_a_corrected_module_trains_after_a_failed_capture():
    module = Item()
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1))
    with pytest.raises(DataDependentError):
        step(torch.randn(5, 4))
    module.between = lambda x: x
    assert step(torch.randn(5, 4)).shape == ()
    assert step.record.updates == 1
