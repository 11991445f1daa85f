"""Looks at the second forward pass of a script, and records what it shows about the split of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from pilotage.proof.watching.splitting.dependence import first_dependence
from pilotage.proof.watching.splitting.forward_record import ForwardRecord, Operation, computed_types, tensors_of
from pilotage.proof.watching.watch import Watch

__all__ = ["SplitCheck"]


class SplitCheck:
    """Records the second forward pass of a script and looks at what it shows."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._record: ForwardRecord | None = None
        self._batch: list[Tensor] = []
        self.is_done = False
        self.is_over = False
        """Whether nothing is recorded and nothing will be: later steps need not call."""

    def at_batch(self, tensors: Sequence[Tensor]) -> None:
        """A batch goes to the script: from the second update on, record what is done with it, once."""
        self._leave()
        if self.is_done or self._watch.updates < 1 or self._watch.is_stopping:
            return
        self._batch = [tensor for tensor in tensors if tensor.dim() and not tensor.requires_grad]
        self._enter()

    def after_update(self) -> None:
        """An update was made: a script without a loader is recorded from here on."""
        if not self.is_done and self._record is None and self._watch.updates == 1 and not self._batch:
            self._enter()

    def _enter(self) -> None:
        self._record = ForwardRecord()
        self._record.__enter__()  # type: ignore[no-untyped-call]

    def _leave(self) -> ForwardRecord | None:
        record, self._record = self._record, None
        self.is_over = self.is_done
        if record is not None:
            record.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        return record

    def at_backward(self, root: Tensor, facts: dict[str, Any], module: nn.Module | None = None) -> None:
        """Backward begins: look at what was recorded of a forward pass of a module."""
        record = self._leave()
        if record is None:
            return
        self.is_done = True
        batch, self._batch = self._batch, []
        if record.is_complete:
            facts["computed_in"] = computed_types(record.operations)
            self.look_at(record, batch, root, module=module)

    def look_at(
        self,
        record: ForwardRecord,
        batch: list[Tensor],
        root: Tensor,
        *,
        returned: Sequence[Tensor] = (),
        module: nn.Module | None = None,
    ) -> None:
        """Record what a forward pass shows about the loss, and where the scalars that forward returns come from."""
        lines = {
            "root": _line_of(record.operations, root),
            "returned": [_line_of(record.operations, each) for each in returned],
        }
        try:
            found = first_dependence(record.operations, batch, root, module)
        except Exception as error:
            self._watch.note("split", line=None, problem=f"{type(error).__name__}: {error}"[:200], **lines)
            return
        line, operation = found or (None, None)
        self._watch.note("split", line=line, operation=operation, **lines)


def _line_of(operations: list[Operation], root: Tensor) -> str | None:
    """Where a tensor was computed."""
    for each in reversed(operations):
        if any(value is root for value in tensors_of(each.results)):
            return each.line
    return None
