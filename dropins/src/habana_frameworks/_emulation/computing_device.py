"""The device that computes for the emulated card: the CPU, or a CUDA card with PILOTAGE_HPU_ON=cuda."""

from __future__ import annotations

import os
import sys

import torch

_CHOICE = "PILOTAGE_HPU_ON"
_CHOICES = ("cpu", "cuda", "off")
_RANDOM = "PILOTAGE_HPU_RANDOM"
_LOOKING = ("accelerate", "transformers")
"""Libraries that import the bridge to see whether there is a Gaudi, and train on it if there is."""
_IMPORTING = ("importlib", "habana_frameworks")


def is_asked_for() -> bool:
    """Whether to register the device on import.

    Unless PILOTAGE_HPU_ON is set, not next to a CUDA card, and not for a library that only looks for a Gaudi.
    """
    choice = os.environ.get(_CHOICE)
    return choice != "off" if choice else not (torch.cuda.is_available() or _importing_package() in _LOOKING)


def _importing_package() -> str:
    """The package of the code whose import statement has led here."""
    frame = sys._getframe()
    while frame.f_back and _package(frame.f_globals) in _IMPORTING:
        frame = frame.f_back
    return _package(frame.f_globals)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


def is_cuda() -> bool:
    """Whether a CUDA card computes."""
    return os.environ.get(_CHOICE) == "cuda"


def check() -> None:
    """Raise an error if the chosen device cannot compute here; initialise it otherwise."""
    wanted = os.environ.get(_CHOICE) or "cpu"
    if wanted not in _CHOICES:
        raise ValueError(f"{_CHOICE} is {wanted!r}. Choose one of: {', '.join(_CHOICES)}.")
    if wanted == "off":
        raise ImportError(f"{_CHOICE} is 'off': Gaudi emulation is disabled. Unset it, or choose 'cpu' or 'cuda'.")
    if (os.environ.get(_RANDOM) or "cpu") not in ("cpu", wanted):
        raise ValueError(
            f"{_RANDOM} is {os.environ[_RANDOM]!r}, but {wanted} computes. Unset it to draw random numbers on the "
            "computing device, or set it to 'cpu' to draw the numbers of the CPU."
        )
    if is_cuda():
        if not torch.cuda.is_available():
            raise ImportError(
                f"{_CHOICE} is 'cuda', but torch {torch.__version__} finds no CUDA card. Unset {_CHOICE} to "
                "compute on the CPU."
            )
        torch.cuda.init()


def card() -> int:
    """Return the index of the CUDA card, chosen by LOCAL_RANK or ID."""
    return int(os.environ.get("LOCAL_RANK") or os.environ.get("ID") or 0) % torch.cuda.device_count()


def name() -> str:
    """Return the name of the computing device."""
    return f"CUDA ({torch.cuda.get_device_name(card())})" if is_cuda() else "the CPU"


def generator() -> torch.Generator:
    """Return the generator of the card's random numbers; with PILOTAGE_HPU_RANDOM=cpu it is the CPU's."""
    if is_cuda() and os.environ.get(_RANDOM) != "cpu":
        return torch.cuda.default_generators[card()]
    return torch.default_generator


def synchronize() -> None:
    """Wait for all work; on the CPU it is already done."""
    if is_cuda():
        torch.cuda.synchronize(card())
