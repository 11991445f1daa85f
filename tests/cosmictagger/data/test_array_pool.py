from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from cosmictagger.data.array_pool import ArrayPool

SHAPE = (3, 20, 30)


def address(array):
    return array.__array_interface__["data"][0]


def test_a_released_array_is_reused_as_zeros():
    canvases = ArrayPool()
    array = canvases.zeros(SHAPE, np.float32)
    array[...] = 7
    first = address(array)
    del array
    again = canvases.zeros(SHAPE, np.float32)
    assert address(again) == first
    assert again.dtype == np.float32
    assert not again.any()


def test_an_array_in_use_is_not_reused():
    canvases = ArrayPool()
    held = canvases.zeros(SHAPE, np.uint8)
    view = canvases.zeros(SHAPE, np.uint8).reshape(-1)[5:]
    tensor = torch.from_numpy(canvases.zeros(SHAPE, np.uint8))
    used = {address(held), address(view.base), tensor.data_ptr()}
    assert len(used) == 3
    assert address(canvases.zeros(SHAPE, np.uint8)) not in used


def test_arrays_are_reused_only_for_the_same_shape_and_type():
    canvases = ArrayPool()
    canvases.zeros(SHAPE, np.uint8)
    assert canvases.zeros((30, 20, 3), np.uint8).shape == (30, 20, 3)
    assert canvases.zeros(SHAPE, np.float32).dtype == np.float32


def test_the_number_of_kept_arrays_is_limited():
    canvases = ArrayPool(most_kept=2)
    arrays = [canvases.zeros(SHAPE, np.uint8) for _ in range(5)]
    places = [address(array) for array in arrays]
    del arrays
    again = [canvases.zeros(SHAPE, np.uint8) for _ in range(2)]
    assert {address(array) for array in again} == set(places[:2])


def test_threads_never_share_an_array():
    canvases = ArrayPool()

    def mark(number):
        array = canvases.zeros((200,), np.int64)
        assert not array.any()
        array[...] = number
        return bool((array == number).all())

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(mark, range(1, 2000)))
