import dataclasses
from typing import NamedTuple

import pytest
import torch

from pilotage.arrival.returned_loss import returned_loss
from pilotage.capture.loss.returned import ReturnedLossRule
from pilotage.errors import LossError

LOSS = torch.ones((), requires_grad=True) * 2
VECTOR = torch.ones(3, requires_grad=True) * 2
PLAIN = torch.ones(())


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    logits: torch.Tensor


class Pair(NamedTuple):
    logits: torch.Tensor
    loss: torch.Tensor


RETURNED = [
    LOSS,
    (VECTOR, LOSS),
    [PLAIN, LOSS],
    {"logits": VECTOR, "loss": LOSS, "other": LOSS * 3},
    Output(LOSS, LOSS * 2),
    Pair(LOSS * 2, LOSS),
    (VECTOR, LOSS.reshape(1)),
]


@pytest.mark.parametrize("value", RETURNED, ids=[str(number) for number in range(len(RETURNED))])
def test_it_is_the_one_that_the_capture_finds(value):
    with ReturnedLossRule({}) as search:
        pass
    assert torch.equal(returned_loss(value, {}), search.root(value).value)


@pytest.mark.parametrize("value", [VECTOR, (LOSS, LOSS * 2), (PLAIN,), None])
def test_where_the_capture_refuses_there_is_none(value):
    with ReturnedLossRule({}) as search:
        pass
    assert returned_loss(value, {}) is None
    with pytest.raises(LossError):
        search.root(value)
