"""`Trainer` in place of `transformers.Trainer`: the training step runs as one program.

from pilotage.integrations.transformers import Trainer
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

import pilotage
from pilotage.door.compiled_model import CompiledModel
from pilotage.errors import OptionError

_Base: Any = object
"""Untyped, since `ProgramSteps` uses methods of `transformers.Trainer`, the other base class of `Trainer`."""


class ProgramSteps(_Base):  # type: ignore[misc]
    """Hugging Face's Trainer with forward, loss, backward, clipping and update in one program.

    ``program`` are options of `pilotage.training`. Evaluation, saving, logging and callbacks are Hugging Face's own and
    see the trained weights and the optimizer's real state.
    """

    def __init__(self, *args: Any, program: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._program_options = dict(program or {})
        self._program: tuple[torch.optim.Optimizer, CompiledModel] | None = None
        self._max_norm = self.args.max_grad_norm
        self._refuse_settings()

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Train on a batch; the update is part of it, so that Hugging Face's own step has nothing left to do."""
        model.train()
        prepared = dict(self._prepare_inputs(inputs))
        if num_items_in_batch is not None and self.model_accepts_loss_kwargs:
            prepared["num_items_in_batch"] = torch.as_tensor(num_items_in_batch)
        with self.compute_loss_context_manager():
            outputs = self._step()(**prepared)
        loss: Tensor = outputs["loss"] if isinstance(outputs, Mapping) else outputs[0]
        return loss.detach().to(self.args.device)

    def _step(self) -> CompiledModel:
        optimizer: torch.optim.Optimizer = getattr(self.optimizer, "optimizer", None) or self.optimizer
        program = self._program
        if program is None or program[0] is not optimizer:
            norm = self._max_norm if self._max_norm else None
            options = {"clip_grad_norm": norm, "name": type(self.model).__name__, **self._program_options}
            step = pilotage.training(self.model, optimizer, **options)
            step.expect_host_steps()
            program = self._program = (optimizer, step)
        return program[1]

    def _inner_training_loop(self, *args: Any, **kwargs: Any) -> Any:
        # The program clips: the host has no gradients.
        self.args.max_grad_norm = 0.0
        try:
            return super()._inner_training_loop(*args, **kwargs)
        finally:
            self.args.max_grad_norm = self._max_norm

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> None:
        """Log no norm: without gradients on the host, Hugging Face's own would be 0."""

    def _refuse_settings(self) -> None:
        arguments = self.args
        reasons = {
            "gradient_accumulation_steps": arguments.gradient_accumulation_steps > 1
            and "Use 1, with a larger per_device_train_batch_size.",
            "label_smoothing_factor": arguments.label_smoothing_factor > 0
            and "Use 0, or smooth the labels in the model's own loss.",
            "compute_loss_func": self.compute_loss_func is not None and "Compute the loss in the model.",
            "compute_loss": not type(self).compute_loss.__module__.startswith("transformers.")
            and "Compute the loss in the model.",
            "fp16": arguments.fp16 and "Use bf16=True.",
            "deepspeed or fsdp": bool(arguments.deepspeed or arguments.fsdp) and "Leave them out.",
            "several devices": (arguments.n_gpu > 1 or arguments.world_size > 1) and "Use one process and one device.",
        }
        for name, reason in reasons.items():
            if reason:
                raise OptionError(f"This Trainer does not support {name} yet. {reason} Or use transformers.Trainer.")


@cache
def _trainer() -> type:
    import transformers

    return type(
        "Trainer", (ProgramSteps, transformers.Trainer), {"__module__": __name__, "__doc__": ProgramSteps.__doc__}
    )


def __getattr__(name: str) -> Any:
    """Import transformers when `Trainer` is first used."""
    if name == "Trainer":
        return _trainer()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
