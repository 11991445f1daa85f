"""Compiles a captured graph into a folder of code. It imports Inductor, so only the compiling process uses it."""

from __future__ import annotations

import hashlib
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from pilotage.compiler.changes import (
    BLOCK_SIZES,
    FUSED_BATCH_NORM,
    JOINED_KERNELS,
    LAYOUTS,
    SMALL_TABLES,
    STORED_SCALARS,
    Changes,
)
from pilotage.compiler.code import CodeFacts, write_code
from pilotage.compiler.joined_kernels import kernels_compiled_together
from pilotage.compiler.kernels import CudaKernelFacts, whole_numbers
from pilotage.compiler.lowerings import keep_draws_of_the_graph, scalars_computed_once
from pilotage.compiler.rewrites.for_card import not_decomposed, rewrite_for_card
from pilotage.compiler.rewrites.small_tables import with_products_for_small_tables
from pilotage.compiler.wrapper import NotSelfContained, load, stand_alone
from pilotage.program.graphs.rewrites import with_declared_writes
from pilotage.program.specification import TensorSpec
from pilotage.torch_private import (
    BATCH_NORM,
    BATCH_NORM_FUNCTIONAL,
    BATCH_NORM_WITHOUT_STATISTICS,
    FOREACH_COPY,
    FOREACH_ZERO,
    IS_STATIC_LAUNCHER,
)

_CHOICES: Mapping[str, Any] = {
    # Random numbers come from torch's own kernels, in the order of the graph, so every tier draws the same ones.
    "fallback_random": True,
    # Use the number of threads at run time, not the compiler's.
    "cpp.dynamic_threads": True,
    # Triton truncates file names, and then cannot find the machine code of kernels with long names.
    "triton.descriptive_names": False,
    "cpp.descriptive_names": False,
    # Inductor's caches contain pickles; ours does not.
    "fx_graph_cache": False,
}

_FOR_SPEED: Mapping[str, tuple[str, bool]] = {
    # For optimizer kernels, more than one block size.
    BLOCK_SIZES: ("max_autotune_pointwise", True),
    LAYOUTS: ("layout_optimization", False),
}


_CAUTIOUS: Mapping[str, Any] = {
    "pattern_matcher": False,
    "comprehensive_padding": False,
    "loop_ordering_after_fusion": False,
    "triton.mix_order_reduction": False,
}


_BATCH_NORM = frozenset(
    {
        BATCH_NORM,
        BATCH_NORM_WITHOUT_STATISTICS,
        BATCH_NORM_FUNCTIONAL,
        torch.ops.aten.native_batch_norm_backward.default,
    }
)


_TABLE_GRADIENT = torch.ops.aten.embedding_dense_backward.default


_SIZES_FROM_KERNELS = frozenset({torch.ops.aten.mkldnn_rnn_layer.default})
"""Operations with a workspace whose size only the kernel knows: generated code would expect the size of a stand-in."""


def compile_graph(
    graph: GraphModule,
    arguments: Sequence[Tensor],
    folder: Path,
    device: torch.device,
    changes: Changes | None = None,
) -> None:
    """Compile a graph for arguments like these, and write wrapper and kernels into a folder."""
    folder.mkdir(parents=True)
    changes = changes or Changes()
    prepared, constants = _prepared(graph)
    count, arguments = len(arguments), [*arguments, *constants]
    with kernels_compiled_together(device.type == "cpu" and changes.allow(JOINED_KERNELS)):
        source, written = _inductor_source(prepared, arguments, device, changes)
        wrapper = stand_alone(source)
        loaded: dict[str, Any] = {"__name__": "inductor", "__file__": str(folder / "inductor.py")}
        exec(compile(source, "<inductor>", "exec"), loaded)
    cpp = {name: loaded[name] for name in wrapper.kernels if not hasattr(loaded[name], "launchers")}
    cuda = {name: loaded[name] for name in wrapper.kernels if hasattr(loaded[name], "launchers")}
    # The first run tunes each kernel; the second records how kernels are launched.
    loaded["call"]([argument.clone() for argument in arguments])
    recorders = {name: _Recorder(kernel) for name, kernel in cuda.items()}
    outputs = load(wrapper, {**cpp, **recorders}, "recording")([argument.clone() for argument in arguments])
    if any(position >= count for position in written):
        raise NotSelfContained("the program writes to a tensor that is built into it")
    write_code(
        folder,
        CodeFacts(
            wrapper=wrapper,
            cpp_kernels=_kept(cpp, folder),
            cuda_kernels={
                name: (_keep(recorder.machine_code, folder, number), recorder.facts())
                for number, (name, recorder) in enumerate(recorders.items())
            },
            arguments=tuple(TensorSpec.of(argument) for argument in arguments[:count]),
            constants=tuple(constants),
            written=written,
            outputs=len(outputs),
        ),
    )


def _inductor_source(
    prepared: GraphModule, arguments: Sequence[Tensor], device: torch.device, changes: Changes
) -> tuple[str, frozenset[int]]:
    """Inductor's wrapper for a prepared graph, and the arguments that it changes."""
    from pilotage.torch_private import compile_fx, compile_fx_inner, inductor_config

    compiled: list[Any] = []

    def inner(graph: GraphModule, examples: Sequence[Any], **choices: Any) -> Any:
        if device.type == "cuda":
            rewrite_for_card(graph, device, changes)
        compiled.append(compile_fx_inner(graph, examples, **choices))
        return compiled[-1]

    keep_draws_of_the_graph()
    wanted = [LAYOUTS, BLOCK_SIZES] if device.type == "cuda" else [LAYOUTS]
    choices = {**_CHOICES, **dict(_FOR_SPEED[name] for name in wanted if changes.allow(name))}
    if changes.is_cautious:
        # Not every torch has all of them.
        choices |= {name: value for name, value in _CAUTIOUS.items() if _is_known(inductor_config, name)}
    if any(node.target in _SIZES_FROM_KERNELS for node in prepared.graph.nodes):
        choices["size_asserts"] = False
    with torch.no_grad(), inductor_config.patch(choices), scalars_computed_once(changes.allow(STORED_SCALARS)):
        examples = [argument.clone() for argument in arguments]
        rules = decomposition_rules(device, changes)
        if device.type == "cpu" and _has_batch_norm(prepared) and not changes.allow(FUSED_BATCH_NORM):
            rules = {target: rule for target, rule in rules.items() if target not in _BATCH_NORM}
        compile_fx(prepared, examples, inner_compile=inner, decompositions=rules)
    if len(compiled) != 1 or compiled[0].constants:
        raise NotSelfContained("Inductor split the graph into several parts, or embedded tensors in it")
    count = len(_output(prepared).args[0])
    if len(compiled[0].output_strides or ()) != count:
        raise NotSelfContained("some outputs or writes are left to Python code around the compiled code")
    return compiled[0].source_code, frozenset(compiled[0].mutated_input_idxs)


def _has_batch_norm(graph: GraphModule) -> bool:
    return any(node.target in _BATCH_NORM for node in graph.graph.nodes)


def _is_known(config: Any, name: str) -> bool:
    """Whether a setting exists."""
    try:
        operator.attrgetter(name)(config)
    except AttributeError:
        return False
    return True


def decomposition_rules(device: torch.device, changes: Changes | None = None) -> dict[Any, Any]:
    """Inductor's decompositions under our settings, adapted to our rewrites."""
    from pilotage.torch_private import inductor_config, select_decomp_table

    whole = not_decomposed(device, changes or Changes())
    # Without our settings dropout would be decomposed, and drawn differently than in the graph.
    with inductor_config.patch(dict(_CHOICES)):
        rules = {target: rule for target, rule in select_decomp_table().items() if target not in whole}
    if device.type == "cuda" and _TABLE_GRADIENT in rules:
        is_wanted = partial((changes or Changes()).allow, SMALL_TABLES)
        rules[_TABLE_GRADIENT] = with_products_for_small_tables(rules[_TABLE_GRADIENT], is_wanted)
    return {**rules, FOREACH_ZERO: _zeroed}


def _zeroed(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Zero a list of tensors; Inductor has no kernel for this, and would copy all of them twice."""
    zeroed: list[Tensor] = FOREACH_COPY(tensors, [torch.zeros_like(each) for each in tensors])
    return zeroed


def _prepared(graph: GraphModule) -> tuple[GraphModule, list[Tensor]]:
    """A copy with declared writes, whose outputs share no memory; tensors built into it are returned as arguments."""
    copy = with_declared_writes(graph)
    constants = _constants_as_arguments(copy)
    output = _output(copy)
    with copy.graph.inserting_before(output):
        results = [copy.graph.call_function(torch.ops.aten.clone.default, (result,)) for result in output.args[0]]
    output.args = (results,)
    copy.recompile()
    return copy, constants


def _constants_as_arguments(graph: GraphModule) -> list[Tensor]:
    """Turn tensors that are built into a graph into its last arguments, and return them."""
    built_in: dict[str, list[Node]] = {}
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            built_in.setdefault(str(node.target), []).append(node)
    *_, last = (node for node in graph.graph.nodes if node.op == "placeholder")
    values: list[Tensor] = []
    for name, nodes in built_in.items():
        with graph.graph.inserting_after(last):
            last = graph.graph.placeholder(f"built_in_{len(values)}")
        for node in nodes:
            node.replace_all_uses_with(last)
            graph.graph.erase_node(node)
        values.append(operator.attrgetter(name)(graph).detach())
        # Otherwise the compiler would add it to the arguments again.
        owner, _, attribute = name.rpartition(".")
        delattr(graph.get_submodule(owner), attribute)
    return values


def _output(graph: GraphModule) -> Any:
    node: Node = next(node for node in graph.graph.nodes if node.op == "output")
    return node


def _kept(kernels: Mapping[str, Any], folder: Path) -> dict[str, tuple[str, str]]:
    """Copy the libraries of CPU kernels into a folder; returns the file and the name of each kernel."""
    libraries = {name: Path(kernel.__self__.__file__) for name, kernel in kernels.items()}
    files = {source: _keep(source, folder, number) for number, source in enumerate(dict.fromkeys(libraries.values()))}
    return {name: (files[libraries[name]], kernel.__name__) for name, kernel in kernels.items()}


def _keep(source: Path, folder: Path, number: int) -> str:
    """Copy a kernel into the folder under a unique name, and return the name.

    The loader caches libraries by path, whatever the file contains: after a program was removed and compiled again, its
    new wrapper would call old kernels.
    """
    content = source.read_bytes()
    name = f"{number}-{hashlib.sha256(content).hexdigest()[:16]}{source.suffix}"
    (folder / name).write_bytes(content)
    return name


class _Recorder:
    """Wraps an Inductor kernel, launches it, and records how."""

    def __init__(self, kernel: Any) -> None:
        (self._launcher,) = kernel.launchers
        if not getattr(self._launcher, IS_STATIC_LAUNCHER, False):
            raise NotSelfContained(f"the kernel {kernel.fn.__name__} cannot be launched without its compiler")
        self._grids: dict[tuple[int, ...], tuple[int, int, int]] = {}
        self._kernel: Any = self._launcher.__globals__["runner"].__self__
        # From torch 2.15 on, the launcher allocates this memory at each launch; older versions refuse such kernels.
        if getattr(self._kernel, "global_scratch_size", None):
            raise NotSelfContained(f"the kernel {self._kernel.name} needs scratch memory from its launcher")
        self._observed = _with_runner(self._launcher, self._observe)
        self._seen: tuple[Any, ...] = ()
        code = self._launcher.__code__
        taken = code.co_varnames[: code.co_argcount]
        constants = set(self._kernel.full_constexprs)
        passed = [
            name for number, name in enumerate(self._kernel.arg_names) if number not in constants and name in taken
        ]
        self._positions = tuple(taken.index(name) for name in passed)
        if len(self._positions) != len(self._kernel.arg_tys):
            raise NotSelfContained(f"the arguments of the kernel {self._kernel.name} do not match its signature")

    def run(self, *arguments: Any, stream: int) -> None:
        """Launch the kernel and record its grid."""
        self._observed(*arguments, stream=stream)
        *grid, _ = self._seen[:4]
        if any(given is not arguments[at] for given, at in zip(self._seen[4:], self._positions, strict=True)):
            raise NotSelfContained(f"the arguments of the kernel {self._kernel.name} do not match its signature")
        self._grids[whole_numbers(arguments)] = (grid[0], grid[1], grid[2])
        self._launcher(*arguments, stream=stream)

    @property
    def machine_code(self) -> Path:
        """The file where Triton keeps the kernel."""
        from pilotage.torch_private import triton_cache_dir

        return Path(triton_cache_dir(0), self._launcher.cache_hash, f"{self._kernel.name}.cubin")

    def facts(self) -> CudaKernelFacts:
        """How to launch the kernel."""
        kernel = self._kernel
        return CudaKernelFacts(
            name=kernel.name,
            warps=kernel.num_warps,
            shared=kernel.shared,
            types=kernel.arg_tys,
            scratch=int(kernel.has_global_scratch) + int(kernel.has_profile_scratch),
            positions=self._positions,
            grids=self._grids,
        )

    def _observe(self, *launch: Any) -> None:
        self._seen = launch


def _with_runner(launcher: Any, runner: Callable[..., None]) -> Callable[..., None]:
    """The same launcher, which passes the launch to another runner."""
    return types.FunctionType(
        launcher.__code__, {**launcher.__globals__, "runner": runner}, launcher.__name__, launcher.__defaults__
    )
