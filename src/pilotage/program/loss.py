"""Finding the loss that the backward pass starts from.

The root is the loss *operation* that forward called, not the value it returns: ``return 5 * mse`` trains as ``mse``
unless it is marked. Every torch loss function is recognised; a loss of one's own is marked with `mark_loss`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from pilotage.errors import LossError

LOSS_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    {
        functional.binary_cross_entropy,
        functional.binary_cross_entropy_with_logits,
        functional.cosine_embedding_loss,
        functional.cross_entropy,
        functional.ctc_loss,
        functional.gaussian_nll_loss,
        functional.hinge_embedding_loss,
        functional.huber_loss,
        functional.kl_div,
        functional.l1_loss,
        functional.margin_ranking_loss,
        functional.mse_loss,
        functional.multi_margin_loss,
        functional.multilabel_margin_loss,
        functional.multilabel_soft_margin_loss,
        functional.nll_loss,
        functional.poisson_nll_loss,
        functional.smooth_l1_loss,
        functional.soft_margin_loss,
        functional.triplet_margin_loss,
        functional.triplet_margin_with_distance_loss,
    }
)


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss, and the place in autograd's graph where it was computed.

    The place is noted at once: ``loss *= 5`` makes the tensor another result, but not the operation.
    """

    value: Tensor
    edge: GradientEdge | None
    """None where the loss depends on nothing that requires a gradient."""

    @classmethod
    def of(cls, value: Tensor) -> Loss:
        """A loss that was computed just now."""
        return cls(value, get_gradient_edge(value) if value.requires_grad else None)


_searching: ContextVar[LossSearch | None] = ContextVar("pilotage_loss_search", default=None)


class LossSearch(TorchFunctionMode):
    """While active, notes every loss that forward computes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Loss] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function, and keep its result if it is a loss."""
        result = func(*args, **(kwargs or {}))
        if func in LOSS_FUNCTIONS:
            self.found.append(Loss.of(result))
        return result

    def __enter__(self) -> LossSearch:
        """Start noting losses, marked ones too."""
        self._token = _searching.set(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exception: Any) -> None:
        """Stop noting losses."""
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        _searching.reset(self._token)

    def root(self) -> Loss:
        """The one loss that feeds no other."""
        if not self.found:
            raise LossError(
                "Couldn't find a loss in graph. The forward of a model that is trained has to call a loss: one of "
                "torch.nn's, or your own wrapped in identity_loss(loss, reduction=...)."
            )
        trained = list({loss.edge: loss for loss in self.found if loss.edge is not None}.values())
        if not trained:
            raise LossError(
                "The loss does not depend on any parameter that requires a gradient. "
                "Check requires_grad, detach() and torch.no_grad() on the way to it."
            )
        final = [loss for loss in trained if not any(_feeds(loss, other) for other in trained if other is not loss)]
        if len(final) > 1:
            raise LossError(
                "Multiple independent losses found in graph. Graph must have one final loss. "
                f"Wrap final graph loss in poptorch.identity_loss. ({len(final)} were found.)"
            )
        return final[0]


def mark_loss(loss: Tensor) -> Tensor:
    """Say that this tensor is the loss to train on; returns it as its own result."""
    search = _searching.get()
    if search is None:
        return loss
    marked = loss.view_as(loss)
    search.found.append(Loss.of(marked))
    return marked


def _feeds(loss: Loss, other: Loss) -> bool:
    """Whether the other loss was computed from this one."""
    if loss.edge is None or other.edge is None:
        return False
    target = loss.edge.node
    seen = set()
    waiting = [other.edge.node]
    while waiting:
        node = waiting.pop()
        if node is target:
            return True
        if node not in seen:
            seen.add(node)
            waiting.extend(above for above, _ in node.next_functions if above is not None)
    return False
