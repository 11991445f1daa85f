"""Looks at the second forward pass of a script, and records what it shows about the split of a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from threading import get_ident
from typing import Any

from torch import Tensor, nn

from pilotage.proof.watching.splitting.dependence import first_dependence
from pilotage.proof.watching.splitting.forward_record import (
    ForwardRecord,
    Operation,
    can_be_repeated,
    computed_types,
    is_in_compiled_call,
    tensors_of,
)
from pilotage.proof.watching.watch import Watch

__all__ = ["SplitCheck"]

_KEPT = 3
"""How many batches are looked for among the recorded operations."""


class SplitCheck:
    """Records the second forward pass of a script and looks at what it shows."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._record: ForwardRecord | None = None
        self._ended: ForwardRecord | None = None
        """A record that ended inside a compiled call, and is left after it."""
        self._batches: deque[list[Tensor]] = deque(maxlen=_KEPT)
        """The last ones: a script may load some ahead."""
        self.is_done = False
        self.is_over = False
        """Whether nothing is recorded and nothing will be: later steps need not call."""
        self.thread: int | None = None
        """The thread that makes the backward passes; batches of others are not looked at."""
        self._is_batch = False
        """Whether a batch went to the script while it was recorded."""
        self._recorded_in: int | None = None
        """The thread whose operations are recorded."""

    def at_batch(self, tensors: Sequence[Tensor]) -> None:
        """A batch goes to the script: from the second update on, record what is done with it, once."""
        if self.thread not in (None, get_ident()):
            return
        self._leave()
        if self.is_done or self._watch.is_stopping:
            return
        self._batches.append([tensor for tensor in tensors if tensor.dim() and not tensor.requires_grad])
        if self._watch.updates and self.thread is not None:
            self._is_batch = True
            self._enter()

    def after_update(self) -> None:
        """An update was made: a script without a loader is recorded from here on."""
        self.thread = self.thread or get_ident()
        if self._ended is not None:
            self._leave()
        if not self.is_done and self._record is None and self._watch.updates == 1 and not self._is_batch:
            self._enter()

    def _enter(self) -> None:
        if is_in_compiled_call():
            return
        self._record = ForwardRecord()
        self._recorded_in = get_ident()
        self._record.__enter__()

    def _leave(self) -> ForwardRecord | None:
        if self._record is not None and self._recorded_in != get_ident():
            # Only the thread that entered it can leave it.
            return None
        record, self._record = self._record, None
        if record is not None:
            record.has_ended, self._ended = True, record
        if self._ended is not None and not is_in_compiled_call():
            self._ended.__exit__(None, None, None)
            self._ended = None
        self.is_over = self.is_done and self._ended is None
        return record

    def at_backward(
        self, root: Tensor, facts: dict[str, Any], module: nn.Module | None = None, inputs: Sequence[Tensor] = ()
    ) -> None:
        """Backward begins: look at what was recorded of a forward pass of a module on these inputs."""
        self.thread = self.thread or get_ident()
        record = self._leave()
        if record is None:
            return
        self.is_done = True
        batch = _used(record.operations, self._batches) if self._is_batch else []
        self._batches.clear()
        if record.is_complete:
            facts["computed_in"] = computed_types(record.operations)
            self.look_at(record, batch, root, module=module, inputs=inputs)

    def look_at(
        self,
        record: ForwardRecord,
        batch: list[Tensor],
        root: Tensor,
        *,
        returned: Sequence[Tensor] = (),
        module: nn.Module | None = None,
        inputs: Sequence[Tensor] = (),
    ) -> None:
        """Record what a forward pass shows about the loss, and where the scalars that forward returns come from."""
        if not can_be_repeated(record.operations):
            self._watch.note("split", line=None, problem="its tensors cannot be computed with again", root=None)
            return
        lines = {
            "root": _line_of(record.operations, root),
            "returned": [_line_of(record.operations, each) for each in returned],
        }
        try:
            found = first_dependence(record.operations, batch, root, module, inputs)
        except Exception as error:
            self._watch.note("split", line=None, problem=f"{type(error).__name__}: {error}"[:200], **lines)
            return
        line, operation = found or (None, None)
        self._watch.note("split", line=line, operation=operation, **lines)


def _used(operations: list[Operation], batches: Iterable[list[Tensor]]) -> list[Tensor]:
    """The newest batch that went into the operations; the newest of all if that cannot be seen."""
    given = {id(value) for each in operations for value in tensors_of((each.args, each.kwargs))}
    newest = list(batches)[::-1]
    return next((batch for batch in newest if any(id(each) in given for each in batch)), newest[0] if newest else [])


def _line_of(operations: list[Operation], root: Tensor) -> str | None:
    """Where a tensor was computed."""
    for each in reversed(operations):
        if any(value is root for value in tensors_of(each.results)):
            return each.line
    return None
