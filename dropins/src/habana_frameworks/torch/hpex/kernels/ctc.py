"""The loss of connectionist temporal classification."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


class CTCLoss:
    """torch's ``ctc_loss`` with the vendor's interface."""

    @staticmethod
    def apply(
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor,
        target_lengths: Tensor,
        blank: int = 0,
        reduction: str = "mean",
        zero_infinity: bool = False,
        /,
    ) -> Tensor:
        """Compute the loss."""
        return functional.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity=zero_infinity
        )
