"""Finds the loss by PopTorch's rule: the loss function that forward calls.

Backward starts at the loss *operation*, not at the value that forward returns: ``return 5 * mse`` trains on ``mse``
unless it is marked. Every loss function of torch is recognised, and so is a marked loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from torch import Tensor
from torch.autograd.graph import Node
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from pilotage.capture.loss.dropped_work import DroppedWork, Operation, dropped_work
from pilotage.capture.loss.search import Loss, Marks, differentiable, final_losses
from pilotage.errors import LossError
from pilotage.program.graphs.source_lines import current_line
from pilotage.program.structure import Parsers, flatten, tensor_paths

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

_SCALINGS = frozenset({"mul", "mul_", "__mul__", "__rmul__", "__imul__", "div", "div_", "__truediv__", "__itruediv__"})


class CalledLossRule(Marks):
    """Finds the one called loss that feeds no other loss."""

    def __init__(self, parsers: Parsers) -> None:
        super().__init__()
        self._parsers = parsers
        self._calls = _LossCalls(self)
        self.operations: dict[Node, Operation] = {}
        """The operations of forward after the first loss."""

    def forget(self) -> None:
        """Forget the losses and the operations behind them."""
        super().forget()
        self.operations.clear()

    def __enter__(self) -> Self:
        """Start recording called and marked losses."""
        super().__enter__()
        self._calls.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop recording losses."""
        self._calls.__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        super().__exit__(kind, error, trace)

    def root(self, value: Any) -> Loss:
        """The one loss that feeds no other."""
        if not self.found:
            raise LossError(
                "Couldn't find a loss in graph. The forward of a model that is trained must call a loss: one of "
                "torch.nn's, or your own wrapped in identity_loss(loss, reduction=...)."
            )
        if not any(loss.edge is not None for loss in self.found):
            # PopTorch runs such a model as well; it updates nothing.
            return self.found[-1]
        final = final_losses(differentiable(self.found))
        if len(final) > 1:
            raise LossError(
                "Multiple independent losses found in graph. Graph must have one final loss. "
                f"Wrap final graph loss in poptorch.identity_loss. ({len(final)} were found.)"
            )
        return final[0]

    def dropped_work(self, root: Loss, value: Any) -> DroppedWork | None:
        """An output that forward computes from the root, whose extra work does not affect the gradients."""
        tensors, structure = flatten(value, self._parsers)
        outputs = dict(zip(tensor_paths(structure, "output"), tensors, strict=True))
        return dropped_work(root, outputs, self.operations)


class _LossCalls(TorchFunctionMode):
    """Records calls of loss functions, and all operations after the first."""

    def __init__(self, search: CalledLossRule) -> None:
        super().__init__()
        self._search = search

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function, and record its result if it is a loss or comes after one."""
        result = func(*args, **(kwargs or {}))
        if func in LOSS_FUNCTIONS:
            self._search.found.append(Loss.of(result, current_line()))
        elif self._search.found:
            self._note(func, args, result)
        return result

    def _note(self, func: Callable[..., Any], args: tuple[Any, ...], result: Any) -> None:
        operations = self._search.operations
        for tensor in _written(args if result is None else result):
            if tensor.grad_fn is not None and tensor.grad_fn not in operations:
                is_neutral = _is_by_one(func, args)
                operations[tensor.grad_fn] = Operation(current_line(), tensor.numel(), is_neutral=is_neutral)


def _written(result: Any) -> Iterator[Tensor]:
    """The tensors of a result and their bases: in-place operations on a view change both."""
    for tensor in (result,) if isinstance(result, Tensor) else result if isinstance(result, tuple | list) else ():
        if isinstance(tensor, Tensor):
            yield tensor
            if tensor._base is not None:
                yield tensor._base


def _is_by_one(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether an operation multiplies or divides by the plain number 1."""
    return (
        getattr(function, "__name__", "") in _SCALINGS
        and len(args) == 2
        and isinstance(args[1], int | float)
        and args[1] == 1
    )
