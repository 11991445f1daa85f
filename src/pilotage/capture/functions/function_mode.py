"""The function mode that intercepts calls of torch's functions during capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch.overrides import TorchFunctionMode

from pilotage.capture.functions.label_types import note_labels
from pilotage.capture.functions.masked_writes import MASK_FORMS
from pilotage.capture.functions.recurrent import RECURRENT_FORMS
from pilotage.capture.functions.refusals import refusal
from pilotage.capture.functions.static_forms import STATIC_FORMS
from pilotage.capture.functions.tensor_indices import POSITION_FORMS, IndexCopies
from pilotage.errors import CaptureError
from pilotage.interrupts import INTERRUPTS
from pilotage.program.graphs.source_lines import called_from


@contextmanager
def compiled_functions_inlined() -> Iterator[None]:
    """Capture functions wrapped by torch.compile as if they were not, inside the block."""
    from pilotage.torch_private import dynamo_config  # Takes seconds to import; capture needs it anyway.

    with dynamo_config.patch(error_on_nested_fx_trace=False):
        yield


class StaticCalls(TorchFunctionMode):
    """While active, replaces functions by capturable forms, and explains errors of those without one."""

    def __init__(self, copies: IndexCopies) -> None:
        super().__init__()
        self._forms: dict[Callable[..., Any], Callable[..., Any]] = {
            **STATIC_FORMS,
            **MASK_FORMS,
            **RECURRENT_FORMS,
            **{function: partial(form, copies) for function, form in POSITION_FORMS.items()},
        }

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function."""
        # Every call in forward passes here, so a long capture can be interrupted.
        INTERRUPTS.deliver_pending()
        try:
            return self._forms.get(func, func)(*args, **(kwargs or {}))
        except CaptureError:
            raise
        except Exception as error:
            explained = refusal(error, func, args, called_from())
            if explained is None:
                note_labels(error, func, args, kwargs or {})
                raise
            raise explained from error
