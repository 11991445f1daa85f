import pytest
import torch
from torch.nn import functional

import pilotage


def classifier(loss):
    model = torch.nn.Linear(3, 2)
    return pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=loss)


def notes(error):
    return "\n".join(getattr(error, "__notes__", ()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16])
def test_labels_of_a_wrong_type_are_named_with_what_to_pass(dtype):
    with pytest.raises(RuntimeError) as caught:
        classifier(functional.cross_entropy)(torch.ones(4, 3), torch.zeros(4, dtype=dtype))
    assert f"The labels of cross_entropy are {dtype} of shape (4,)" in notes(caught.value)
    assert "pass labels.long()" in notes(caught.value)
    assert ("need the shape (4, 2)" in notes(caught.value)) is dtype.is_floating_point


def test_other_errors_of_the_loss_get_no_advice_about_labels():
    with pytest.raises((RuntimeError, ValueError)) as caught:
        classifier(functional.cross_entropy)(torch.ones(4, 3), torch.zeros(3, dtype=torch.long))
    assert "labels" not in notes(caught.value)
