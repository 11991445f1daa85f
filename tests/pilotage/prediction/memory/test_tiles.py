from pilotage.prediction.devices import device_model
from pilotage.prediction.memory.tiles import fullest_tile, tile_memory


def test_the_fullest_tile_is_fuller_than_the_mean_by_the_imbalance():
    tiles = device_model("bow").tiles
    assert fullest_tile(1472 * 100_000, tiles) == round(100_000 * tiles.imbalance)


def test_all_tiles_are_in_the_histogram():
    tiles = device_model("bow").tiles
    found = tile_memory(1472 * 100_000, tiles)
    assert sum(each.tiles for each in found.histogram) == found.count == 1472
    assert found.mean_bytes == 100_000
    assert found.histogram[-1].high_bytes > found.max_bytes >= found.histogram[-1].low_bytes
