"""What computes for the emulated card: the processor, or a CUDA card where PILOTAGE_HPU_ON asks for it; or nothing at all."""

from __future__ import annotations

import os

import torch

_CHOICE = "PILOTAGE_HPU_ON"
_CHOICES = ("cpu", "cuda", "off")
_RANDOM = "PILOTAGE_HPU_RANDOM"


def is_asked_for() -> bool:
    """Say whether the device should be there before it is used; beside a CUDA card only where PILOTAGE_HPU_ON says so."""
    choice = os.environ.get(_CHOICE)
    return choice != "off" if choice else not torch.cuda.is_available()


def is_cuda() -> bool:
    """Say whether a CUDA card computes."""
    return os.environ.get(_CHOICE) == "cuda"


def check() -> None:
    """Raise where what is asked for cannot compute here; wake it where it can."""
    wanted = os.environ.get(_CHOICE) or "cpu"
    if wanted not in _CHOICES:
        raise ValueError(f"{_CHOICE} is {wanted!r}. Choose one of: {', '.join(_CHOICES)}.")
    if wanted == "off":
        raise ImportError(f"{_CHOICE} is 'off': no Gaudi is emulated here. Leave it out, or choose 'cpu' or 'cuda'.")
    if (os.environ.get(_RANDOM) or "cpu") not in ("cpu", wanted):
        raise ValueError(
            f"{_RANDOM} is {os.environ[_RANDOM]!r}, and {wanted} computes. Leave it out to draw random numbers where "
            "everything is computed, or say 'cpu' to draw what the CPU draws."
        )
    if is_cuda():
        if not torch.cuda.is_available():
            raise ImportError(
                f"{_CHOICE} is 'cuda', and torch {torch.__version__} reaches no CUDA card. Leave {_CHOICE} out to compute on "
                "the CPU."
            )
        torch.cuda.init()


def card() -> int:
    """Return the number of the CUDA card, which ID or LOCAL_RANK chooses among those that are there."""
    return int(os.environ.get("ID") or os.environ.get("LOCAL_RANK") or 0) % torch.cuda.device_count()


def name() -> str:
    """Return what computes, in words."""
    return f"CUDA ({torch.cuda.get_device_name(card())})" if is_cuda() else "the CPU"


def generator() -> torch.Generator:
    """Return the generator that draws the card's random numbers; with PILOTAGE_HPU_RANDOM=cpu it is always the CPU's."""
    if is_cuda() and os.environ.get(_RANDOM) != "cpu":
        return torch.cuda.default_generators[card()]
    return torch.default_generator


def synchronize() -> None:
    """Wait until all work is done, which the processor has done already."""
    if is_cuda():
        torch.cuda.synchronize(card())
