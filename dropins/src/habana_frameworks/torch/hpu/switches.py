"""Settings of the card's compiler. They are remembered, and change no results here."""

from __future__ import annotations

import os
import warnings

import torch

_STREAMS = "PT_ENABLE_HABANA_STREAMASYNC"
_TRUE = ("1", "true", "yes", "on")

_state = {
    "dynamic_shape": os.environ.get("PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES", "").lower() in _TRUE,
    "recompute_sdp": True,
    "optim_output_sif": False,
    "inference_mode": False,
    "quantization": False,
    "matmul3d_2d_reshape": False,
    "const_section_serialization": False,
}


def enable_dynamic_shape() -> None:
    """Let the card compile for ranges of shapes; the emulation takes every shape anyway."""
    _state["dynamic_shape"] = True


def disable_dynamic_shape() -> None:
    """Let the card compile for each shape."""
    _state["dynamic_shape"] = False


def get_dynamic_shape_status() -> bool:
    """Whether dynamic shapes are enabled."""
    return _state["dynamic_shape"]


def enable_recompute_sdp(enabled: bool) -> None:
    """Choose whether attention is computed again in backward; results are the same."""
    _state["recompute_sdp"] = bool(enabled)


def recompute_sdp_enabled() -> bool:
    """Whether attention is computed again in backward; True at first."""
    return _state["recompute_sdp"]


def enable_optim_output_sif() -> None:
    """Enable a pass of the card's compiler."""
    _state["optim_output_sif"] = True


def disable_optim_output_sif() -> None:
    """Disable a pass of the card's compiler."""
    _state["optim_output_sif"] = False


def enable_inference_mode() -> None:
    """Let the card compile for inference."""
    _state["inference_mode"] = True


def disable_inference_mode() -> None:
    """Let the card compile for training."""
    _state["inference_mode"] = False


def enable_quantization() -> None:
    """Enable quantization in the card's compiler; the emulation quantizes nothing by itself."""
    _state["quantization"] = True


def disable_quantization() -> None:
    """Disable quantization in the card's compiler."""
    _state["quantization"] = False


def enable_matmul3d_2d_reshape() -> None:
    """Let the card compute products of three dimensions in two."""
    _state["matmul3d_2d_reshape"] = True


def disable_matmul3d_2d_reshape() -> None:
    """Let the card compute products of three dimensions as they are."""
    _state["matmul3d_2d_reshape"] = False


def enable_const_section_serialization(path: str, clear_path: bool, use_compression: bool) -> None:
    """Let the card write constants of its programs to a folder; the emulation has no such constants."""
    del path, clear_path, use_compression
    _state["const_section_serialization"] = True


def disable_const_section_serialization() -> None:
    """Stop writing constants."""
    _state["const_section_serialization"] = False


def setDeterministic(val: bool) -> None:
    """Use deterministic algorithms; torch.use_deterministic_algorithms is the newer name."""
    _warn("setDeterministic", "torch.use_deterministic_algorithms")
    torch.use_deterministic_algorithms(val)


def getDeterministic() -> bool:
    """Whether deterministic algorithms are used."""
    _warn("getDeterministic", "torch.are_deterministic_algorithms_enabled")
    return torch.are_deterministic_algorithms_enabled()


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Remember in the environment whether the card's streams run asynchronously."""
    os.environ[_STREAMS] = str(debug_mode)


def get_sync_debug_mode() -> int:
    """Return what set_sync_debug_mode set; KeyError if it was never set."""
    return int(os.environ[_STREAMS])


def _warn(name: str, newer: str) -> None:
    warnings.warn(f"torch.hpu.{name} is deprecated. Use {newer}.", DeprecationWarning, stacklevel=3)
