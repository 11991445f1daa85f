"""Operations under ``torch.ops.poptorch`` that programs call directly."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch
from pilotage.engine import schema_of

ops = torch.ops.poptorch
X = torch.tensor([[1.0, -2.0], [3.0, 4.0]])


class Calling(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.convolution = nn.Conv1d(1, 1, 1)
        self.function = function

    def forward(self, x):
        return self.function(self, x)


def run(function, *, strategy=None, **options):
    made = poptorch.Options()
    if strategy is not None:
        made.setExecutionStrategy(strategy)
    model = poptorch.inferenceModel(Calling(function), made)
    return model(X), model


SIGNATURES = [
    "begin_ipu_block(int stage_id, int phase_id, int ipu_id) -> ()",
    "end_ipu_block() -> ()",
    "start_for_loop(Tensor[] inputs) -> ()",
    "end_for_loop(Tensor[] outputs, Tensor[] inputs, int trip_count) -> Tensor[]",
    "start_if_block(Tensor condition) -> ()",
    "start_else_block(Tensor[] outputs_true) -> ()",
    "end_if_block(Tensor[] outputs, Tensor condition) -> Tensor[]",
    "optimizer_group(int group, Tensor[] inputs) -> ()",
    "begin_multi_conv() -> ()",
    "end_multi_conv(float[]? available_memory_proportions, int[]? partials_types, int? plan_type, int? "
    "per_conv_reserved_tiles, float? cycle_back_off, int[]? enableConvDithering) -> ()",
    "push_name_scope(str name) -> ()",
    "pop_name_scope() -> ()",
    "set_attribute(str attribute, str key, str value) -> ()",
    "clear_attribute(str attribute, str key) -> ()",
    "ipu_print_tensor(Tensor self, str title, int print_gradient, int summarize_threshold, int edge_items, "
    "int max_line_width, int digits, int float_format, str separator, str open_bracket, str close_bracket) "
    "-> Tensor",
    "nop(Tensor self) -> Tensor",
    "recomputation_checkpoint(Tensor self) -> Tensor",
    "set_matmul_serialization(Tensor matmul, str mode, int factor, bool keep_precision) -> Tensor",
    "set_overlap_for_input(Tensor t, str mode) -> Tensor",
    "set_overlap_for_output(Tensor t, str mode) -> Tensor",
    "set_available_memory(Tensor t, float mem) -> Tensor",
    "custom_operation(Tensor[] inputs, str name, str domain, int domain_version, int num_outputs, Tensor[] "
    "outputs, str attributes) -> Tensor[]",
    "ctc_beam_search_decoder(Tensor probs, Tensor lengths, int blank, int beam_width, int top_paths) -> "
    "(Tensor, Tensor, Tensor)",
    "dynamic_slice(Tensor self, int dim, Tensor start, int size, int step) -> Tensor",
    "dynamic_update(Tensor self, Tensor src, int dim, Tensor start, int size) -> Tensor",
    "identity_loss(Tensor x, int reduction) -> Tensor",
    "internal_cast(Tensor self, str dtype) -> Tensor",
    "call_cpu_op(Tensor[] inputs, str name) -> ()",
    "end_cpu_op(Tensor[] output) -> Tensor[]",
    "fps(Tensor src, int[] ptr, float ratio, bool random_start) -> Tensor",
    "nearest(Tensor x, Tensor y, Tensor batch_x, Tensor batch_y) -> Tensor",
    "nearest_batch_list(Tensor x, Tensor y, int[] batch_x, int[] batch_y) -> Tensor",
]


@pytest.mark.parametrize("signature", SIGNATURES)
def test_every_operation_has_poptorchs_signature(signature):
    operation = getattr(ops, signature.partition("(")[0]).default
    assert str(schema_of(operation)) == f"poptorch::{signature}"


def test_outside_of_a_capture_markers_do_nothing_and_tensors_pass():
    ops.begin_ipu_block(0, -1, 0)
    ops.end_ipu_block()
    ops.start_for_loop([X])
    ops.start_if_block(X)
    ops.start_else_block([X])
    ops.optimizer_group(0, [X])
    ops.begin_multi_conv()
    ops.end_multi_conv([0.5], [1], 0, 1, 0.5, [1])
    ops.call_cpu_op([X], "name")
    for result in (
        ops.end_for_loop([X], [X], 3),
        ops.end_if_block([X], X),
        ops.end_cpu_op([X]),
        ops.custom_operation([X], "name", "domain", 1, 1, [X], ""),
    ):
        assert [each.tolist() for each in result] == [X.tolist()]
    for result in (
        ops.nop(X),
        ops.recomputation_checkpoint(X),
        ops.set_matmul_serialization(X, "none", 1, False),
        ops.set_overlap_for_input(X, "no_overlap"),
        ops.set_overlap_for_output(X, "overlap_accumulation_loop"),
        ops.set_available_memory(X, 0.1),
        ops.ipu_print_tensor(X, "title", 1, 1000, 3, 80, 4, 0, ", ", "(", ")"),
        ops.internal_cast(X, "FLOAT"),
    ):
        assert torch.equal(result, X)
    assert ops.internal_cast(X.half(), "FLOAT16").dtype == torch.float32


def test_blocks_are_placed_where_they_say(monkeypatch):
    def staged(self, x):
        ops.begin_ipu_block(0, -1, 0)
        y = self.layer(x)
        ops.end_ipu_block()
        ops.begin_ipu_block(1, -1, 1)
        return y + 1

    with pytest.raises(poptorch.Error, match=r"deviceIterations must be greater than or equal .* stages \(2\)"):
        run(staged)
    _, model = run(staged, strategy=poptorch.ShardedExecution())
    assert [visit.placement.ipu for visit in model._capture.visits] == [0, 1]


def test_work_outside_of_blocks_is_refused():
    def leave(self, x):
        ops.begin_ipu_block(0, -1, 0)
        ops.end_ipu_block()
        return self.layer(x)

    with pytest.raises(poptorch.Error, match="No active Block"):
        run(leave)


def test_names_and_attributes_are_those_of_the_context_managers():
    from poptorch.ops.annotations import present_attributes

    seen = []

    def named(self, x):
        ops.push_name_scope("outer")
        ops.push_name_scope("inner")
        ops.set_attribute("__outline", "layer", "embedding")
        seen.append(present_attributes()["__outline"])
        y = x * 2
        ops.clear_attribute("__outline", "layer")
        seen.append(present_attributes()["__outline"])
        ops.pop_name_scope()
        ops.pop_name_scope()
        return y

    _, model = run(named)
    assert seen[:2] == [{"layer": "embedding"}, {}]
    assert any("outer/inner" in name for name in model.getTensorNames())


def test_convolutions_are_counted_between_the_bounds():
    def convolve(self, x, count):
        ops.begin_multi_conv()
        for _ in range(count):
            x = self.convolution(x[:, None])[:, 0]
        ops.end_multi_conv(None, None, None, None, None, None)
        return x

    run(lambda self, x: convolve(self, x, 2))
    with pytest.raises(poptorch.Error, match="Unexpected end_multi_conv"):
        run(lambda self, x: convolve(self, x, 0))


def test_values_are_printed_as_by_the_function(capfd):
    run(lambda self, x: ops.ipu_print_tensor(x, "mine", 1, 1000, 3, 80, 4, 1, ", ", "(", ")"))
    assert "mine: {" in capfd.readouterr().err


def test_casts_have_the_type_that_they_name():
    result, _ = run(lambda self, x: (ops.internal_cast(x, "FLOAT16"), ops.internal_cast(x.half(), "FLOAT")))
    assert [each.dtype for each in result] == [torch.float16, torch.float32]
    with pytest.raises(poptorch.Error, match="FLOAT or FLOAT16"):
        run(lambda self, x: ops.internal_cast(x, "INT8"))


@pytest.mark.parametrize(("reduction", "expected"), [(0, X.sum()), (1, X.mean()), (2, X)])
def test_the_loss_is_reduced_by_number(reduction, expected):
    assert torch.equal(ops.identity_loss(X, reduction), expected)
    with pytest.raises(poptorch.Error, match="reduction, not 3"):
        ops.identity_loss(X, 3)


def test_a_marked_loss_is_trained_on():
    module = Calling(lambda self, x: ops.identity_loss(5 * nn.functional.mse_loss(self.layer(x), x), 0))
    twin = nn.Linear(2, 2)
    twin.load_state_dict(module.layer.state_dict())
    poptorch.trainingModel(module, optimizer=poptorch.optim.SGD(module.parameters(), lr=0.1))(X)
    (5 * nn.functional.mse_loss(twin(X), X)).backward()
    torch.testing.assert_close(module.layer.weight, twin.weight - 0.1 * twin.weight.grad)


def test_slices_and_points_are_those_of_the_functions():
    start = torch.tensor([1])
    assert torch.equal(ops.dynamic_slice(X, 0, start, 1, 1), X[1:])
    assert ops.dynamic_update(X, torch.zeros(1, 2), 0, start, 1).tolist() == [[1.0, -2.0], [0.0, 0.0]]
    assert ops.fps(X, [0, 2], 1.0, False).tolist() == [0, 1]
    zeros = torch.zeros(2, dtype=torch.int64)
    assert ops.nearest(X, X, zeros, zeros).tolist() == ops.nearest_batch_list(X, X, [0, 0], [0, 0]).tolist() == [0, 1]
    probabilities = torch.randn(3, 1, 4).log_softmax(-1)
    shapes = [list(each.shape) for each in ops.ctc_beam_search_decoder(probabilities, torch.tensor([3]), 0, 10, 2)]
    assert shapes == [[1, 2], [1, 2], [1, 2, 3]]


def test_branches_are_chosen_by_the_condition():
    def choose(self, x):
        condition = x.sum() > 0
        ops.start_if_block(condition)
        yes = x * 2
        ops.start_else_block([yes])
        return ops.end_if_block([x * 3], condition)[0]

    model = poptorch.inferenceModel(Calling(choose))
    assert torch.equal(model(X), X * 2)
    assert torch.equal(model(-X), -X * 3)


def test_a_loop_that_would_run_only_once_is_refused():
    run(lambda self, x: ops.end_for_loop([x + 1], [x], 1)[0])
    with pytest.raises(poptorch.Error, match=r"ran once, and not 4 times\. Call poptorch\.for_loop"):
        run(lambda self, x: ops.end_for_loop([x + 1], [x], 4)[0])


def test_a_custom_operation_runs_its_implementation():
    @poptorch.implementCustomOp("Scaled", "test.registered")
    def scaled(x, factor=1.0):
        return x * factor

    result, _ = run(
        lambda self, x: ops.custom_operation([x], "Scaled", "test.registered", 1, 1, [x], '{"factor": 3.0}')[0]
    )
    assert torch.equal(result, X * 3)
