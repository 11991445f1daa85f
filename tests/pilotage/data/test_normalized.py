"""Images that are normalised on the device."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage

BYTES = torch.randint(0, 256, (5, 1, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def normalised(images: torch.Tensor) -> torch.Tensor:
    """What torchvision computes with ToTensor and Normalize((0.5,), (0.5,))."""
    return images.float().div(255).sub(0.5).div(0.5)


def test_normalisation_is_bitwise_identical_to_torchvision():
    wrapped = pilotage.inference(pilotage.Normalized(nn.Identity()), backend="cpu")
    assert torch.equal(wrapped(BYTES), normalised(BYTES))


def test_each_channel_has_its_own_numbers():
    images = BYTES.expand(5, 3, 28, 28).contiguous()
    mean, std = (0.1, 0.2, 0.3), (1.0, 2.0, 4.0)
    expected = (images.float() / 255 - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    assert torch.equal(pilotage.Normalized(nn.Identity(), mean=mean, std=std)(images), expected)


def test_further_arguments_are_passed_on():
    class Two(nn.Module):
        def forward(self, images, labels, *, scale):
            return images.sum() * scale + labels.sum()

    labels = torch.tensor([1.0, 2.0])
    value = pilotage.Normalized(Two())(BYTES, labels, scale=2)
    assert torch.equal(value, normalised(BYTES).sum() * 2 + 3)


def test_numbers_are_refused():
    with pytest.raises(TypeError, match=r"torch\.uint8"):
        pilotage.Normalized(nn.Identity())(BYTES.float())


def test_the_state_dictionary_is_that_of_the_model():
    assert set(pilotage.Normalized(nn.Linear(2, 2)).state_dict()) == {"module.weight", "module.bias"}
