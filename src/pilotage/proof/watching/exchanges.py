"""What processes tell each other: collective operations of torch.distributed, and modules that exchange gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from pilotage.distributed.shutdown import wait_at_exit
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.watch import Watch

__all__ = ["ExchangeWatch"]

_SUMMING = ("all_reduce", "reduce_scatter", "reduce_scatter_tensor", "all_reduce_coalesced")
_OTHERS = ("all_gather", "all_gather_into_tensor", "broadcast", "reduce", "gather", "scatter")


class ExchangeWatch:
    """Counts collective operations of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._counts: dict[str, int] = {}

    def install(self, distributed: ModuleType) -> None:
        """Follow collective operations from now on."""
        for name in (*_SUMMING, *_OTHERS):
            replace_function(distributed, name, partial(self._counted, name))
        replace_function(distributed, "init_process_group", partial(self._joined, distributed))
        self._watch.summaries.append(lambda: {"collectives": dict(self._counts)})

    def _counted(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._counts[name] = self._counts.get(name, 0) + 1
            if name in _SUMMING and self._watch.pending.backwards:
                # After backward and before the update: gradients, most often.
                self._watch.pending.exchanges += 1
            return original(*args, **kwargs)

        return call

    def _joined(self, distributed: ModuleType, original: Callable[..., Any]) -> Callable[..., Any]:
        def join(*args: Any, **kwargs: Any) -> Any:
            # Scripts that use gloo occasionally abort at exit because of gloo itself, which would end the proof.
            wait_at_exit()
            result = original(*args, **kwargs)
            # Processes that a script starts itself have no variables that say this.
            self._watch.note("group", rank=distributed.get_rank(), size=distributed.get_world_size())
            return result

        return join
