"""The graphs of the stages, run one after the other, compute what the whole step computes."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.fx import Graph, GraphModule

from pilotage.errors import CaptureError
from pilotage.passes.stage_graphs import StepGraph, cut
from pilotage.passes.stage_phases import Phases

aten = torch.ops.aten
OPERATIONS = (aten.add.Tensor, aten.mul.Tensor, aten.sub.Tensor)


class Builder:
    """A graph of small vectors, and the phase of each of its values."""

    def __init__(self, stages, state, inputs=1):
        self.graph, self.stages, self.phases = Graph(), stages, {}
        self.state = [self._with_value(self.graph.placeholder(f"w{number}")) for number in range(state)]
        self.inputs = [self._with_value(self.graph.placeholder(f"x{number}")) for number in range(inputs)]
        self.written = frozenset()

    def _with_value(self, node):
        node.meta["val"] = torch.empty(3)
        return node

    def call(self, operation, *arguments, phase):
        node = self._with_value(self.graph.call_function(operation, arguments))
        self.phases[node] = phase
        for value in arguments:
            if value in self.state:
                # A weight lives in the stage that needs it first.
                self.phases.setdefault(value, min(phase, 2 * self.stages - 1 - phase))
        return node

    def finish(self, outputs, gradients=()):
        self.graph.output([*outputs, *(gradient for _, _, gradient in gradients)])
        for weight in self.state:
            self.phases.setdefault(weight, 0)
        self.outputs, self.gradients = outputs, gradients
        self.module = GraphModule(torch.nn.Module(), self.graph)
        return self

    def of_stage(self, stage, tensors):
        return [tensor for node, tensor in zip(self.state, tensors, strict=True) if self.phases[node] == stage]

    def cut(self, stage):
        step = StepGraph(
            graph=self.module,
            state=[node for node in self.state if self.phases[node] == stage],
            inputs=self.inputs,
            outputs=self.outputs,
            gradients=self.gradients,
            everywhere=frozenset(self.inputs),
        )
        return cut(step, Phases(self.stages, self.phases, self.written), stage)


def run(part, arguments):
    """What a graph sends, returns and leaves behind."""
    results = part.graph(*arguments)
    end = len(part.sent) + len(part.outputs)
    outputs = dict(zip(part.outputs, results[len(part.sent) : end], strict=True))
    return results[: len(part.sent)], outputs, results[end:]


@st.composite
def straight_programs(draw):
    """Operations on earlier values, in stages that follow each other, and some of the results as outputs."""
    stages = draw(st.integers(1, 4))
    builder = Builder(stages, state=3)
    values, made, stage = [*builder.state, *builder.inputs], [], 0
    for _ in range(draw(st.integers(stages, 10))):
        stage = min(stages - 1, stage + draw(st.integers(0, 1)))
        first = draw(st.sampled_from(made or builder.inputs))
        node = builder.call(draw(st.sampled_from(OPERATIONS)), first, draw(st.sampled_from(values)), phase=stage)
        values.append(node)
        made.append(node)
    return builder.finish(draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True)))


@given(straight_programs())
def test_the_stages_of_any_program_compute_what_it_computes(builder):
    weights, x = [torch.randn(3) for _ in builder.state], torch.randn(3)
    found, sent = {}, []
    for stage in range(builder.stages):
        part = builder.cut(stage)
        assert part.backward is None
        assert len(part.forward.received) == len(sent)
        sent, outputs, left = run(part.forward, [*builder.of_stage(stage, weights), x, *sent])
        assert left == []
        found |= outputs
    assert sent == []
    in_order = [found[number] for number in range(len(builder.outputs))]
    torch.testing.assert_close(in_order, list(builder.module(*weights, x)), rtol=0, atol=0)


@given(straight_programs())
def test_all_stages_name_the_same_owners_and_neighbours_agree(builder):
    parts = [builder.cut(stage) for stage in range(builder.stages)]
    assert {part.owners for part in parts} == {tuple(builder.phases[node] for node in builder.outputs)}
    for part, following in pairwise(parts):
        assert part.forward.sent == following.forward.received
    assert parts[0].forward.received == ()
    assert parts[-1].forward.sent == ()


def test_a_value_that_skips_a_stage_is_passed_on_by_it():
    builder = Builder(3, state=0)
    (x,) = builder.inputs
    early = builder.call(aten.neg.default, x, phase=0)
    middle = builder.call(aten.exp.default, early, phase=1)
    late = builder.call(aten.add.Tensor, early, middle, phase=2)
    parts = [builder.finish([late]).cut(stage).forward for stage in range(3)]
    assert [len(part.sent) for part in parts] == [1, 2, 0]


def test_inputs_of_later_stages_are_named():
    builder = Builder(2, state=0, inputs=3)
    first, second, unused = builder.inputs
    early = builder.call(aten.neg.default, first, phase=0)
    late = builder.call(aten.add.Tensor, early, second, phase=1)
    assert builder.finish([late]).cut(0).inputs == (1,)
    assert unused not in builder.phases


def test_a_value_that_is_computed_after_it_is_needed_is_refused():
    builder = Builder(2, state=0)
    late = builder.call(aten.neg.default, *builder.inputs, phase=1)
    early = builder.call(aten.exp.default, late, phase=0)
    with pytest.raises(CaptureError, match="is computed in stage 1, after stage 0 needs it"):
        builder.finish([early]).cut(0)


def trained():
    """y = x w0, z = y w1, the loss z² and its gradients."""
    builder = Builder(2, state=2)
    (w0, w1), (x,) = builder.state, builder.inputs
    y = builder.call(aten.mul.Tensor, x, w0, phase=0)
    z = builder.call(aten.mul.Tensor, y, w1, phase=1)
    loss = builder.call(aten.mul.Tensor, z, z, phase=1)
    of_z = builder.call(aten.add.Tensor, z, z, phase=2)
    of_w1 = builder.call(aten.mul.Tensor, of_z, y, phase=2)
    of_y = builder.call(aten.mul.Tensor, of_z, w1, phase=2)
    of_w0 = builder.call(aten.mul.Tensor, of_y, x, phase=3)
    return builder.finish([loss], [("w0", w0, of_w0), ("w1", w1, of_w1)])


def test_backward_gets_what_forward_kept_and_what_the_next_stage_sends():
    builder = trained()
    w0, w1, x = torch.randn(3), torch.randn(3), torch.randn(3)
    first, last = builder.cut(0), builder.cut(1)
    sent, _, kept_first = run(first.forward, [w0, x])
    nothing, outputs, kept_last = run(last.forward, [w1, x, *sent])
    assert nothing == []
    torch.testing.assert_close(outputs[0], (x * w0 * w1).square())
    back, _, of_w1 = run(last.backward, [w1, *kept_last])
    end, _, of_w0 = run(first.backward, [w0, *kept_first, *back])
    assert end == []
    assert (first.gradients, last.gradients) == (("w0",), ("w1",))
    torch.testing.assert_close([*of_w0, *of_w1], [2 * x * w0 * w1 * w1 * x, 2 * x * w0 * w1 * x * w0])


def test_nothing_crosses_that_a_stage_has_by_itself():
    first, last = trained().cut(0), trained().cut(1)
    # The activation forth, its gradient back.
    assert (len(first.forward.sent), len(last.backward.sent)) == (1, 1)
    assert first.backward.sent == ()


def test_state_that_changes_is_kept_as_it_was():
    builder = Builder(1, state=2)
    (weight, counter), (x,) = builder.state, builder.inputs
    y = builder.call(aten.mul.Tensor, x, weight, phase=0)
    z = builder.call(aten.mul.Tensor, y, counter, phase=0)
    of_weight = builder.call(aten.mul.Tensor, x, counter, phase=1)
    builder.written = frozenset({counter})
    part = builder.finish([z], [("w0", weight, of_weight)]).cut(0)
    value = torch.full((3,), 2.0)
    _, _, kept = run(part.forward, [torch.ones(3), value, torch.ones(3)])
    value.add_(1)
    _, _, gradients = run(part.backward, [torch.ones(3), value, *kept])
    torch.testing.assert_close(gradients, [torch.full((3,), 2.0)])
