"""The options of ``torch.compile(backend="hpu_backend", options=...)``. On the card they change speed; here nothing."""

from __future__ import annotations

use_compiled_recipes: bool = True
decomposition_mode: str = "habana"
keep_input_mutations: bool = True
use_eager_fallback: bool = True
use_graph_freezing: bool = False
discard_frozen_params: bool = False
remove_unnecessary_clones: bool = True
use_inplace_allreduce: bool = True
use_inplace_index_copy: bool = True
inference: bool = True
enable_sfg: bool = False
use_cpp_partitioner: bool = True
enable_allreduce_graph_split: bool = True
force_static_compile: bool = False
reinplace_add: bool = True
reassign_full_copy: bool = True
reassign_copy_: bool = True
use_boxed_input: bool = True

OPTIONS = tuple(sorted(name for name in __annotations__ if name != "OPTIONS"))
"""The names of all options."""

DECOMPOSITION_MODES = ("habana", "core_aten", "none")


class _Flags:
    """The options by name."""

    def __getitem__(self, name: str) -> object:
        if name not in OPTIONS:
            raise KeyError(name)
        return globals()[name]

    def __setitem__(self, name: str, value: object) -> None:
        if name not in OPTIONS:
            raise KeyError(name)
        globals()[name] = value


configuration_flags = _Flags()
