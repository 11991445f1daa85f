"""Small rewrites that every captured graph goes through."""

from __future__ import annotations

import operator
from collections.abc import Collection

import torch
from torch.fx import GraphModule, Node

from pilotage.errors import CaptureError
from pilotage.program.graphs.forward_marks import is_kept
from pilotage.program.graphs.labels import add_label, labels_of
from pilotage.program.graphs.source_lines import line_of
from pilotage.torch_private import ASSERT_ASYNC, BATCH_NORM, BATCH_NORM_WITHOUT_STATISTICS, OpOverload

aten = torch.ops.aten

_RUNNING_STATISTICS = {
    aten.native_batch_norm.default: (3, 4, 5),
    aten.cudnn_batch_norm.default: (3, 4, 5),
    aten.miopen_batch_norm.default: (3, 4, 5),
}
"""Operations that write to two arguments without declaring it, if a third one is true."""


def clean_up(graph: GraphModule) -> GraphModule:
    """Clean up a fresh capture, in place."""
    _refuse_collectives(graph)
    for node in list(graph.graph.nodes):
        if node.op == "get_attr":
            _detach_constant(graph, str(node.target))
        if node.op != "call_function":
            continue
        if node.target is aten.view.default:
            # Fake and real strides differ for a few kernels, and a recorded view would raise at run time.
            node.target = aten.reshape.default
        elif node.target is aten.detach.default:
            # Nothing requires a gradient when the graph runs, so detaching is the identity.
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    for node in list(graph.graph.nodes):
        _skip_double_transpose(node)
    graph.graph.eliminate_dead_code(_is_kept)
    graph.recompile()
    return graph


def _skip_double_transpose(node: Node) -> None:
    """Use a tensor itself instead of the transpose of its transpose, which backward of a linear layer asks for."""
    inner = node.args[0] if node.args else None
    if not isinstance(inner, Node) or not _swapped(node) or _swapped(node) != _swapped(inner) or is_kept(node):
        return
    original = inner.args[0]
    # A result has to stay a tensor of its own.
    if isinstance(original, Node) and not any(user.op == "output" for user in node.users):
        for name in labels_of(node):
            add_label(original, name)
        node.replace_all_uses_with(original)


def _swapped(node: Node) -> frozenset[int]:
    """The dimensions that an operation swaps; empty if it is something else."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dim() < 2:
        return frozenset()
    if node.target is aten.t.default:
        return frozenset({0, 1})
    dimensions = node.args[1:] if node.target is aten.transpose.int else ()
    return frozenset(each % value.dim() for each in dimensions if isinstance(each, int))


def hidden_writes(node: Node) -> list[Node]:
    """The arguments, or their bases, that an operation changes without declaring it in its schema."""
    if node.target not in _RUNNING_STATISTICS:
        return []
    mean, variance, training = (node.args[position] for position in _RUNNING_STATISTICS[node.target])
    return [_base(argument) for argument in (mean, variance) if training and isinstance(argument, Node)]


def _base(node: Node) -> Node:
    while isinstance(node.target, OpOverload) and node.target.is_view and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _detach_constant(graph: GraphModule, name: str) -> None:
    """Detach a constant: if it requires a gradient, every step would build an autograd graph."""
    value = getattr(graph, name)
    if isinstance(value, torch.Tensor) and value.requires_grad:
        delattr(graph, name)
        graph.register_buffer(name, value.detach(), persistent=False)


def _refuse_collectives(graph: GraphModule) -> None:
    for node in graph.graph.nodes:
        if isinstance(node.target, OpOverload) and node.target.namespace == "c10d":
            raise CaptureError(
                f"forward calls the collective {node.target.name()} of torch.distributed. Captured, it would not wait "
                "for the result, and train on wrong values. The engine reduces gradients; for other values use "
                f"torch.distributed._functional_collectives, or exchange them outside the model.\n  at {line_of(node)}"
            )


def copy_graph(graph: GraphModule) -> GraphModule:
    """A copy of a graph with the same constants."""
    nodes = torch.fx.Graph()
    nodes.output(nodes.graph_copy(graph.graph, {}))
    return GraphModule(graph, nodes)


def returning(graph: GraphModule, places: Collection[int]) -> GraphModule:
    """A copy of a graph that returns only some of its results."""
    copy = copy_graph(graph)
    output = copy.graph.output_node()
    output.args = ([each for place, each in enumerate(results_of(copy)) if place in places],)
    copy.graph.eliminate_dead_code(_is_kept)
    copy.recompile()
    return copy


def results_of(graph: GraphModule) -> list[Node]:
    """The values that a graph returns."""
    returned = graph.graph.output_node().args[0]
    assert isinstance(returned, (list, tuple))
    return [node for node in returned if isinstance(node, Node)]


def without_checks(graph: GraphModule) -> GraphModule:
    """A copy of a graph without the check of its loss."""
    copy = copy_graph(graph)
    for node in list(copy.graph.nodes):
        if node.target is ASSERT_ASYNC:
            copy.graph.erase_node(node)
    copy.graph.eliminate_dead_code(_is_kept)
    copy.recompile()
    return copy


def with_declared_writes(graph: GraphModule) -> GraphModule:
    """A copy in which every operation declares its writes in its schema."""
    copy = copy_graph(graph)
    nodes = list(copy.graph.nodes)
    # Backward first: it uses what cuDNN's forward reserves for it, and then nothing does.
    for node in nodes:
        if node.target is aten.cudnn_batch_norm_backward.default:
            _declare_backward(copy, node)
    for node in nodes:
        if node.target in _RUNNING_STATISTICS:
            _declare_statistics(copy, node)
    copy.graph.eliminate_dead_code(_is_kept)
    copy.recompile()
    return copy


def _is_kept(node: Node) -> bool:
    return bool(node.is_impure() or hidden_writes(node))


def _declare_statistics(graph: GraphModule, node: Node) -> None:
    source, weight, bias, mean, _, *rest = node.args
    with graph.graph.inserting_before(node):
        if mean is None:
            declared = graph.graph.call_function(BATCH_NORM_WITHOUT_STATISTICS, (source, weight, bias, *rest), {})
        else:
            declared = graph.graph.call_function(BATCH_NORM, tuple(node.args), {})
    node.replace_all_uses_with(declared)
    for user in list(declared.users):
        # What cuDNN reserves for its own backward; nothing needs it any more.
        if user.target is operator.getitem and user.args[1] == 3:
            graph.graph.erase_node(user)
    graph.graph.erase_node(node)


def _declare_backward(graph: GraphModule, node: Node) -> None:
    source, gradient, weight, mean, variance, save_mean, save_variance, epsilon, _ = node.args
    arguments = (gradient, source, weight, mean, variance, save_mean, save_variance, True, epsilon, [True, True, True])
    with graph.graph.inserting_before(node):
        declared = graph.graph.call_function(aten.native_batch_norm_backward.default, arguments, {})
    node.replace_all_uses_with(declared)
    graph.graph.erase_node(node)
