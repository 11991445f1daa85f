import pytest

from pilotage.prediction.devices import device_model
from pilotage.prediction.timing.card import card_cost
from pilotage.prediction.timing.cost import Arithmetic
from pilotage.prediction.trace.work import Product, Work, WorkKind

CARD = device_model("h200")


def seconds(work, **settings):
    return card_cost(work, CARD, Arithmetic(**settings)).seconds


def product(m, n, k, kind="bfloat16", **facts):
    size = 2 if kind == "bfloat16" else 4
    part = Product(1, m, n, k)
    read, written = size * (m * k + k * n), size * m * n
    return Work(kind=WorkKind.PRODUCT, type=kind, flops=part.flops, read=read, written=written, parts=(part,), **facts)


def test_a_small_kernel_takes_as_long_as_it_takes_to_start():
    tiny = Work(kind=WorkKind.ELEMENTWISE, flops=10, read=40, written=40)
    assert seconds(tiny) == pytest.approx(CARD.overheads.operation_seconds, rel=0.01)


def test_a_large_elementwise_operation_takes_its_traffic():
    large = Work(kind=WorkKind.ELEMENTWISE, flops=1, read=2 * 10**9, written=10**9)
    assert seconds(large) == pytest.approx(3e9 / CARD.traffic.memory, rel=0.01)


def test_half_precision_multiplies_faster_and_tf32_only_if_it_is_allowed():
    half, full = product(4096, 4096, 4096), product(4096, 4096, 4096, "float32")
    assert seconds(half) < seconds(full) / 8
    assert seconds(full, products_in_tf32=True) < seconds(full) / 4


def test_a_wave_that_is_not_full_takes_as_long_as_a_full_one():
    rate = [2 * n * 4096 * 4096 / seconds(product(n, 4096, 4096)) for n in (4096, 4224, 8192)]
    assert rate[1] < rate[0] * 1.05
    assert rate[2] > 0.6 * CARD.compute.bfloat16


def test_misaligned_rows_are_slow_in_half_precision():
    assert seconds(product(4096, 50257, 768, aligned=False)) > 3 * seconds(product(4096, 50257, 768))


def test_a_channel_is_summed_by_one_processor():
    facts = {"kind": WorkKind.NORMALIZATION, "elements": 10**7, "read": 4 * 10**7, "written": 4 * 10**7}
    assert seconds(Work(lanes=8, **facts)) > 10 * seconds(Work(lanes=4096, **facts))


def test_lists_take_few_kernels_unless_their_types_differ():
    facts = {"kind": WorkKind.ELEMENTWISE, "flops": 1, "read": 1000, "written": 1000, "tensors": 160}
    assert seconds(Work(**facts)) < 10 * CARD.overheads.operation_seconds
    assert seconds(Work(mixed=True, **facts)) > 100 * CARD.overheads.operation_seconds


def test_copies_from_the_host_take_the_link():
    found = card_cost(Work(kind=WorkKind.TRANSFER, read=10**9, written=10**9), CARD, Arithmetic())
    assert found.host == pytest.approx(1e9 / CARD.host.link_bytes_per_second)


def test_attention_of_short_sequences_is_less_efficient():
    def rate(length):
        flops = 4 * 64 * length * length * 64
        work = Work(kind=WorkKind.ATTENTION, type="bfloat16", flops=flops, read=1, written=1, elements=length)
        return flops / card_cost(work, CARD, Arithmetic()).compute

    assert rate(100) < rate(128) < rate(2048)


def test_operations_that_convert_types_take_longer_for_each_element_and_to_start():
    facts = {"kind": WorkKind.ELEMENTWISE, "flops": 1, "read": 2 * 10**7, "written": 2 * 10**7, "elements": 10**7}
    assert seconds(Work(mixed=True, **facts)) > 2 * seconds(Work(**facts))
    tiny = Work(kind=WorkKind.ELEMENTWISE, flops=1, read=60, written=40, elements=10, mixed=True)
    assert seconds(tiny) == pytest.approx(2.7e-6, rel=0.01)


def test_copies_between_rows_in_another_order_take_longer():
    facts = {"kind": WorkKind.ELEMENTWISE, "read": 6_300_000, "written": 6_300_000, "elements": 3_145_728}
    assert seconds(Work(strided=True, **facts)) == pytest.approx(9.4e-6, rel=0.15)  # as measured
    assert seconds(Work(**facts)) < 5e-6


def test_the_loss_of_an_image_is_summed_by_few_processors():
    facts = {"kind": WorkKind.REDUCTION, "read": 10**6, "written": 4, "elements": 2 * 320 * 320}
    assert seconds(Work(lanes=2, **facts)) == pytest.approx(48.4e-6, rel=0.1)  # as measured
    assert seconds(Work(**facts)) < 10e-6


def test_a_sum_that_processors_share_takes_longer_to_start():
    facts = {"kind": WorkKind.REDUCTION, "read": 10**6, "written": 4}
    assert seconds(Work(split=True, **facts)) > seconds(Work(**facts)) + 3e-6


def test_the_backward_pass_of_a_layer_normalisation_goes_through_all_rows():
    facts = {"kind": WorkKind.NORMALIZATION, "read": 9_700_000, "written": 4_850_000, "elements": 2_420_736}
    assert seconds(Work(rows=6304, backward=True, **facts)) == pytest.approx(29e-6, rel=0.15)  # as measured
    assert seconds(Work(rows=6304, **facts)) < 15e-6


def test_the_backward_pass_of_pooling_searches():
    facts = {"kind": WorkKind.RESIZING, "read": 10**7, "written": 10**7, "elements": 9_830_400}
    assert seconds(Work(backward=True, **facts)) == pytest.approx(103e-6, rel=0.1)  # as measured
    assert seconds(Work(**facts)) < 50e-6


def test_only_scattering_pays_for_rows_with_the_same_place():
    facts = {"kind": WorkKind.GATHER, "read": 10**6, "written": 10**6}
    assert seconds(Work(backward=True, **facts)) > 50e-6
    assert seconds(Work(**facts)) < 5e-6
