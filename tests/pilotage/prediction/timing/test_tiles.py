import pytest

from pilotage.prediction.devices import device_model
from pilotage.prediction.timing.tiles import tile_cost
from pilotage.prediction.trace.work import Convolution, Product, Work, WorkKind

IPU = device_model("mk2")


def product(kind="float16"):
    part = Product(1, 4096, 4096, 4096)
    return Work(kind=WorkKind.PRODUCT, type=kind, flops=part.flops, read=10**8, written=10**8, parts=(part,))


def test_every_operation_synchronises_all_tiles():
    tiles = IPU.tiles
    found = tile_cost(Work(kind=WorkKind.ELEMENTWISE, flops=1, read=4, written=4), IPU)
    assert found.synchronisation == pytest.approx(tiles.superstep_cycles / tiles.clock_hertz)
    assert tile_cost(product(), IPU).synchronisation == pytest.approx(3 * found.synchronisation)


def test_operands_of_products_come_from_other_tiles():
    tiles = IPU.tiles
    way = tiles.count * tiles.exchange_bytes_per_cycle * tiles.clock_hertz
    assert tile_cost(product(), IPU).exchange == pytest.approx(1e8 / way)
    assert tile_cost(Work(kind=WorkKind.ELEMENTWISE, read=10**8, written=1), IPU).exchange == 0


def test_half_precision_is_four_times_as_fast():
    assert tile_cost(product("float32"), IPU).compute == pytest.approx(4 * tile_cost(product(), IPU).compute)


def test_a_list_is_an_operation_for_each_tensor():
    one = Work(kind=WorkKind.ELEMENTWISE, flops=1, read=4, written=4)
    many = Work(kind=WorkKind.ELEMENTWISE, flops=1, read=4, written=4, tensors=50)
    assert tile_cost(many, IPU).synchronisation == pytest.approx(50 * tile_cost(one, IPU).synchronisation)


def test_views_take_no_time():
    assert tile_cost(Work(kind=WorkKind.FREE), IPU).seconds == 0


def test_single_channels_leave_most_of_a_multiplication_empty():
    def rate(channels, groups):
        part = Convolution(
            pixels=10**5, channels_in=channels, channels_out=channels, taps=9, groups=groups, way="forward", moved=1
        )
        work = Work(kind=WorkKind.CONVOLUTION, type="float16", flops=part.flops, read=1, written=1, parts=(part,))
        return part.flops / tile_cost(work, IPU).compute

    assert rate(1, 64) < rate(64, 1) / 10
