import pytest
import torch

from pilotage.prediction.trace.classification import name_of, work_of
from pilotage.prediction.trace.tensor_values import described
from pilotage.prediction.trace.work import WorkKind
from pilotage.torch_private import FakeTensorMode

aten = torch.ops.aten


def work(operation, *args, **kwargs):
    with FakeTensorMode(allow_non_fake_inputs=True):
        return work_of(operation, args, kwargs, operation(*args, **kwargs))


def test_a_product_multiplies_and_adds_for_each_inner_element():
    found = work(aten.addmm.default, torch.zeros(8), torch.zeros(4, 16), torch.zeros(16, 8))
    assert (found.kind, found.flops) == (WorkKind.PRODUCT, 2 * 4 * 16 * 8)
    assert (found.read, found.written) == (4 * (8 + 4 * 16 + 16 * 8), 4 * 4 * 8)
    assert work(aten.bmm.default, torch.zeros(3, 4, 5), torch.zeros(3, 5, 6)).flops == 2 * 3 * 4 * 5 * 6


def test_a_product_with_rows_at_odd_places_is_not_aligned():
    even, odd = torch.zeros(64, 64, dtype=torch.bfloat16), torch.zeros(64, 63, dtype=torch.bfloat16)
    assert work(aten.mm.default, even, even).aligned
    assert not work(aten.mm.default, even, odd).aligned


def test_a_convolution_counts_each_tap_and_backward_each_pass():
    x, w = torch.zeros(2, 3, 8, 8), torch.zeros(5, 3, 3, 3)
    settings = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    forward = work(aten.convolution.default, x, w, None, *settings)
    assert forward.flops == 2 * 2 * 8 * 8 * 5 * 3 * 9
    y = torch.zeros(2, 5, 8, 8)
    both = work(aten.convolution_backward.default, y, x, w, None, *settings, [True, True, False])
    assert both.flops == 2 * forward.flops
    assert [part.way for part in both.parts] == ["input", "weight"]
    grouped = work(aten.convolution.default, torch.zeros(2, 4, 8, 8), torch.zeros(4, 1, 3, 3), None, *settings[:-1], 4)
    assert grouped.flops == 2 * 2 * 8 * 8 * 4 * 9


def test_attention_is_cheaper_if_it_is_causal():
    q = torch.zeros(2, 4, 128, 32)
    full = work(aten._scaled_dot_product_efficient_attention.default, q, q, q, None, True)
    causal = work(aten._scaled_dot_product_efficient_attention.default, q, q, q, None, True, 0.0, True)
    assert full.flops == 4 * 2 * 4 * 128 * 128 * 32
    assert causal.flops == full.flops // 2


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        (aten.view.default, (torch.zeros(4, 4), [16])),
        (aten.t.default, (torch.zeros(4, 4),)),
        (aten.detach.default, (torch.zeros(4),)),
        (aten.empty_like.default, (torch.zeros(4),)),
    ],
)
def test_views_and_new_memory_are_free(operation, args):
    assert work(operation, *args).kind is WorkKind.FREE


@pytest.mark.parametrize(
    ("operation", "args", "kind"),
    [
        (aten.add.Tensor, (torch.zeros(4), torch.zeros(4)), WorkKind.ELEMENTWISE),
        (aten.sum.dim_IntList, (torch.zeros(4, 4), [0]), WorkKind.REDUCTION),
        (aten.native_layer_norm.default, (torch.zeros(4, 4), [4], None, None, 1e-5), WorkKind.NORMALIZATION),
        (aten.embedding.default, (torch.zeros(9, 4), torch.zeros(2, dtype=torch.long)), WorkKind.GATHER),
        (aten.native_dropout.default, (torch.zeros(4), 0.5, True), WorkKind.RANDOM),
        (aten.max_pool2d_with_indices.default, (torch.zeros(1, 1, 4, 4), [2, 2]), WorkKind.RESIZING),
        (aten.clone.default, (torch.zeros(4, 8).t(),), WorkKind.ELEMENTWISE),
    ],
)
def test_operations_have_a_kind(operation, args, kind):
    assert work(operation, *args).kind is kind


def test_a_copy_into_another_order_is_a_transposition():
    turned = work(aten.clone.default, torch.zeros(4, 8).t(), memory_format=torch.contiguous_format)
    assert turned.kind is WorkKind.TRANSPOSITION


def test_a_row_of_a_table_is_read_not_the_table():
    found = work(aten.embedding.default, torch.zeros(10_000, 4), torch.zeros(2, dtype=torch.long))
    assert found.read < 200


def test_lists_of_different_types_take_a_kernel_each():
    wide, narrow = [torch.zeros(4), torch.zeros(4)], [torch.zeros(4, dtype=torch.bfloat16)] * 2
    assert not work(aten._foreach_add.List, wide, wide).mixed
    found = work(aten._foreach_add.List, wide, narrow)
    assert found.mixed
    assert found.tensors == 2


def test_operands_of_different_types_are_converted():
    wide, narrow = torch.zeros(8, 8), torch.zeros(8, 8, dtype=torch.bfloat16)
    assert work(aten.add.Tensor, wide, narrow).mixed
    assert not work(aten.add.Tensor, wide, wide).mixed
    # A mask has no type to convert.
    assert not work(aten.where.self, torch.ones(8, 8, dtype=torch.bool), wide, wide).mixed


def test_copies_of_views_are_strided():
    heads = torch.zeros(2, 4, 8, 16).transpose(1, 2)
    assert work(aten.clone.default, heads, memory_format=torch.contiguous_format).strided
    assert not work(aten.clone.default, torch.zeros(2, 4, 8, 16)).strided
    assert work(aten.stack.default, [heads, heads]).strided
    assert not work(aten.cat.default, [torch.zeros(4, 4), torch.zeros(4, 4)]).strided


def test_the_loss_of_an_image_has_a_block_for_many_pixels():
    def lanes(size):
        labels = torch.zeros(2, size, size, dtype=torch.long)
        return work(aten.nll_loss2d_forward.default, torch.zeros(2, 3, size, size), labels, None, 1, -100).lanes

    assert (lanes(128), lanes(320), lanes(640)) == (2, 2, 6)


def test_sums_of_many_numbers_into_few_are_shared():
    assert work(aten.sum.dim_IntList, torch.zeros(4096, 64), [0]).split
    assert not work(aten.sum.dim_IntList, torch.zeros(128, 64), [0]).split
    assert not work(aten.sum.dim_IntList, torch.zeros(4096, 2048), [1]).split


def test_the_rows_of_a_layer_normalisation_are_counted():
    assert work(aten.native_layer_norm.default, torch.zeros(2, 8, 16), [16], None, None, 1e-5).rows == 16


def test_results_are_described_by_type_and_shape():
    value = (torch.zeros(2, 3), torch.zeros(4, dtype=torch.bfloat16), torch.zeros((), dtype=torch.bool))
    assert described(value) == "f32[2,3], bf16[4], bool[]"
    assert name_of(aten.convolution.default) == "aten.convolution"


def test_an_operator_of_ones_own_starts_as_many_kernels_as_it_says():
    @torch.library.custom_op("test_classification::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    overload = torch.ops.test_classification.twice.default
    assert work(overload, torch.zeros(8)).kernels == 1
    overload.kernels = 4
    assert work(overload, torch.zeros(8)).kernels == 4
