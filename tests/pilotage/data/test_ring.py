import gc
import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.data.ring import Layout, Ring, anonymous_file
from pilotage.errors import InputError

DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.uint8,
    torch.int64,
    torch.bool,
    torch.cfloat,
)


def ring_for(tensors, chunks=2, rows=None, on_disk=False):
    layout = Layout.like(tensors, rows)
    descriptor = anonymous_file(layout.bytes * chunks, on_disk=on_disk)
    try:
        return Ring(descriptor, layout, chunks), Ring(descriptor, layout, chunks)
    finally:
        os.close(descriptor)


@settings(deadline=None)
@given(
    shapes=st.lists(
        st.tuples(st.lists(st.integers(0, 5), max_size=3), st.sampled_from(DTYPES)), min_size=1, max_size=4
    ),
    on_disk=st.booleans(),
)
def test_two_mappings_share_their_contents(shapes, on_disk):
    items = [[(torch.rand(shape) * 9).to(dtype) for shape, dtype in shapes] for _ in range(2)]
    writer, reader = ring_for(items[0], on_disk=on_disk)
    rows = [writer.write(chunk, item) for chunk, item in enumerate(items)]
    for chunk, item in enumerate(items):
        for tensor, expected in zip(reader.read(chunk, rows[chunk]), item, strict=True):
            assert tensor.dtype == expected.dtype
            assert torch.equal(tensor, expected)


def test_tensors_start_aligned():
    _, ring = ring_for([torch.ones(3, dtype=torch.uint8), torch.rand(5)])
    assert all(tensor.data_ptr() % 64 == 0 for chunk in range(2) for tensor in ring.read(chunk, (3, 5)))


def test_a_shorter_item_keeps_its_number_of_rows():
    writer, reader = ring_for([torch.rand(4, 3)])
    rows = writer.write(0, [torch.ones(2, 3)])
    assert torch.equal(reader.read(0, rows)[0], torch.ones(2, 3))


def test_items_are_views_that_change_when_the_chunk_is_overwritten():
    writer, reader = ring_for([torch.zeros(2)])
    view = reader.read(0, writer.write(0, [torch.zeros(2)]))[0]
    writer.write(0, [torch.ones(2)])
    assert torch.equal(view, torch.ones(2))


def test_a_view_outlives_its_ring():
    writer, reader = ring_for([torch.zeros(1000)])
    view = reader.read(0, writer.write(0, [torch.ones(1000)]))[0]
    del writer, reader
    gc.collect()
    assert view.sum() == 1000


@pytest.mark.parametrize(
    "item",
    [[torch.rand(5, 3)], [torch.rand(4, 2)], [torch.rand(4, 3, 1)], [torch.full((4, 3), 1j)]],
    ids=["longer", "wider", "more dimensions", "complex"],
)
def test_an_item_that_does_not_fit_is_refused_with_both_shapes(item):
    ring, _ = ring_for([torch.rand(4, 3)])
    with pytest.raises(InputError, match=r"shape \(4, 3\) and torch.float32"):
        ring.write(0, item)


@pytest.mark.parametrize(
    ("first", "later"), [(torch.float32, torch.int64), (torch.float32, torch.float64), (torch.int64, torch.float32)]
)
def test_values_of_another_type_are_converted_to_that_of_the_first_item(first, later):
    writer, reader = ring_for([torch.zeros(3, dtype=first)])
    (read,) = reader.read(0, writer.write(0, [torch.tensor([1, -2, 3], dtype=later)]))
    assert read.dtype == first
    assert read.tolist() == [1, -2, 3]


def test_values_that_the_first_items_type_cannot_hold_are_refused():
    writer, _ = ring_for([torch.zeros(2, dtype=torch.int64)])
    with pytest.raises(InputError, match="values that this type can hold"):
        writer.write(0, [torch.tensor([1.0, 0.5])])


def test_another_number_of_tensors_is_refused():
    ring, _ = ring_for([torch.rand(4)])
    with pytest.raises(InputError, match="has 1 tensors, a later one 2"):
        ring.write(0, [torch.rand(4), torch.rand(4)])


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_ring_that_does_not_fit_is_an_error_and_leaves_no_descriptor(on_disk):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=r"does not fit into the .* Reduce the buffer size"):
        anonymous_file(1 << 60, on_disk=on_disk)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_memory_of_a_ring_is_freed_with_its_last_view():
    before = len(os.listdir("/proc/self/fd"))
    writer, reader = ring_for([torch.zeros(1000)])
    view = reader.read(0, writer.write(0, [torch.ones(1000)]))[0]
    del writer, reader, view
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
