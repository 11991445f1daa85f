"""Data-dependent functions are refused by name, and every advised rewrite works."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import pilotage
from pilotage.capture.functions.refusals import ADVICE
from pilotage.errors import DataDependentError

X = torch.tensor([0.0, 2.0, 0.0, 3.0, 3.0])
COUNTS = torch.tensor([1, 0, 2, 1, 1])
MATRIX = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
SEQUENCES = torch.arange(24.0).reshape(2, 4, 3) / 24
LENGTHS = torch.tensor([4, 2])


@dataclass(frozen=True)
class Case:
    """A refused function, and what to write instead."""

    named: str
    refused: Callable[..., Any]
    rewritten: Callable[..., Any]
    inputs: tuple[Tensor, ...] = (X,)
    back: Callable[[Any], Any] = lambda result: result
    """From the result of the rewrite to that of the original."""


class Last(nn.Module):
    """The last output of a recurrent layer for each sequence."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.GRU(3, 2, batch_first=True)


class Packed(Last):
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True)
        return self.layer(packed)[1][0]


class Padded(Last):
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        output = self.layer(x)[0]
        return output[torch.arange(len(lengths)), lengths - 1]


def branch(x):
    if x.sum() > 0:
        return x
    return -x


def rounds(x, counts):
    for _ in range(counts.sum()):
        x = x + 1
    return x


def is_new(values):
    return values, torch.cat([torch.ones(1, dtype=torch.bool), values[1:] != values[:-1]])


CASES = {
    "nonzero": Case(
        "torch.Tensor.nonzero",
        lambda x: x.nonzero(),
        lambda x: torch.nonzero_static(x, size=5),
        back=lambda rows: rows[rows[:, 0] >= 0],
    ),
    "argwhere": Case(
        "torch.argwhere",
        lambda x: torch.argwhere(x),
        lambda x: torch.nonzero_static(x, size=5),
        back=lambda rows: rows[rows[:, 0] >= 0],
    ),
    "where": Case(
        "torch.where",
        lambda x: torch.where(x > 0)[0],
        lambda x: torch.nonzero_static(x > 0, size=5),
        back=lambda rows: rows[rows[:, 0] >= 0][:, 0],
    ),
    "masked_select": Case(
        "torch.masked_select",
        lambda x: torch.masked_select(x, x > 0).mean(),
        lambda x: torch.where(x > 0, x, 0).sum() / (x > 0).sum(),
    ),
    "__getitem__": Case(
        "torch.Tensor.__getitem__",
        lambda x: x[x > 0].mean(),
        lambda x: torch.where(x > 0, x, 0).sum() / (x > 0).sum(),
    ),
    "unique": Case(
        "torch.unique",
        lambda x: torch.unique(x),
        lambda x: is_new(x.flatten().sort().values),
        back=lambda found: found[0][found[1]],
    ),
    "unique of a tensor": Case(
        "torch.Tensor.unique",
        lambda x: x.unique(),
        lambda x: is_new(x.flatten().sort().values),
        back=lambda found: found[0][found[1]],
    ),
    "unique_consecutive": Case(
        "torch.unique_consecutive", lambda x: torch.unique_consecutive(x), is_new, back=lambda found: found[0][found[1]]
    ),
    "item": Case("torch.Tensor.item", lambda x: x * x.sum().item(), lambda x: x * x.sum()),
    "tolist": Case(
        "torch.Tensor.item",
        lambda x, counts: [x * count for count in counts.tolist()],
        lambda x, counts: [x * count for count in counts.unbind()],
        (X, COUNTS),
    ),
    "__float__": Case("torch.Tensor.__float__", lambda x: x * float(x.sum()), lambda x: x * x.sum()),
    "__int__": Case(
        "torch.Tensor.__int__", lambda x, counts: x * int(counts[0]), lambda x, counts: x * counts[0], (X, COUNTS)
    ),
    "__index__": Case("torch.Tensor.__index__", rounds, lambda x, counts: x + counts.sum(), (X, COUNTS)),
    "__bool__": Case("torch.Tensor.__bool__", branch, lambda x: torch.where(x.sum() > 0, x, -x)),
    "is_nonzero": Case(
        "torch.is_nonzero",
        lambda x: x if torch.is_nonzero(x.sum()) else -x,
        lambda x: torch.where(x.sum() != 0, x, -x),
    ),
    "__contains__": Case("torch.Tensor.__contains__", lambda x: torch.as_tensor(3.0 in x), lambda x: (x == 3.0).any()),
    "equal": Case(
        "torch.equal", lambda x: torch.as_tensor(torch.equal(x, x.flip(0))), lambda x: (x == x.flip(0)).all()
    ),
    "allclose": Case(
        "torch.allclose",
        lambda x: torch.as_tensor(torch.allclose(x, x + 1e-9)),
        lambda x: torch.isclose(x, x + 1e-9).all(),
    ),
    "numpy": Case("torch.Tensor.numpy", lambda x: torch.as_tensor(x.numpy().sum()), lambda x: x.sum()),
    "__array__": Case("torch.Tensor.__array__", lambda x: torch.as_tensor(numpy.asarray(x).sum()), lambda x: x.sum()),
    "repeat_interleave": Case(
        "torch.repeat_interleave",
        lambda x, counts: torch.repeat_interleave(x, counts),
        lambda x, counts: torch.repeat_interleave(x, counts, output_size=5),
        (X, COUNTS),
    ),
    "bincount": Case(
        "torch.bincount",
        lambda counts: torch.bincount(counts),
        lambda counts: torch.bincount(counts, minlength=3),
        (COUNTS,),
    ),
    "one_hot": Case(
        "torch.nn.functional.one_hot",
        lambda counts: functional.one_hot(counts),
        lambda counts: functional.one_hot(counts, num_classes=3),
        (COUNTS,),
    ),
    "tensor": Case("torch.tensor", lambda x: torch.tensor([x[0], x[1]]), lambda x: torch.stack([x[0], x[1]])),
    "slice": Case(
        "torch.Tensor.__getitem__",
        lambda x, counts: x[: counts[2]].sum(),
        lambda x, counts: torch.where(torch.arange(5) < counts[2], x, 0).sum(),
        (X, COUNTS),
    ),
    "split": Case(
        "torch.Tensor.tensor_split",
        lambda x, counts: x.tensor_split(counts[2:3])[0].sum(),
        lambda x, counts: torch.where(torch.arange(5) < counts[2], x, 0).sum(),
        (X, COUNTS),
    ),
    "arange": Case(
        "torch.arange",
        lambda x, counts: torch.arange(counts[2]).sum(),
        lambda x, counts: torch.where(torch.arange(5) < counts[2], torch.arange(5), 0).sum(),
        (X, COUNTS),
    ),
    "__format__": Case(
        "torch.Tensor.__format__", lambda x: f"{x.sum():.2f}", lambda x: x.sum(), back=lambda total: f"{total:.2f}"
    ),
    "linalg_lstsq": Case(
        "torch.linalg.lstsq",
        lambda a: torch.linalg.lstsq(a, a[:, :1], driver="gelsd")[0],
        lambda a: torch.linalg.lstsq(a, a[:, :1], driver="gels")[0],
        (MATRIX,),
    ),
    "_pack_padded_sequence": Case("_pack_padded_sequence", Packed(), Padded(), (SEQUENCES, LENGTHS)),
}


class Calls(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_refusal_names_the_function_the_users_line_and_a_rewrite(case):
    with pytest.raises(DataDependentError) as refused:
        pilotage.inference(Calls(case.refused))(*case.inputs)
    text = str(refused.value)
    assert f"({case.named})" in text
    assert re.search(rf"\n  at {re.escape(__file__)}:\d+ in \S+: ", text)
    assert any(advice in text for advice in ADVICE.values())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_rewrite_runs_and_equals_the_original(case, assert_equal):
    wanted = case.refused(*case.inputs)
    found = case.back(pilotage.inference(Calls(case.rewritten))(*case.inputs))
    if isinstance(wanted, str):
        assert found == wanted
    else:
        assert_equal(found, wanted, 1e-6)


def test_every_advised_rewrite_is_tested():
    tried = {ADVICE[name] for name in ADVICE if name in CASES} | {ADVICE["tensor_split"]}
    assert tried == set(ADVICE.values())


def test_errors_of_backward_name_the_backward_pass():
    class Filling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.values = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return pilotage.mark_loss(torch.zeros(5).index_put((x > 0,), self.values).square().mean())

    module = Filling()
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1))
    with pytest.raises(DataDependentError, match="in the backward pass"):
        step(X)
