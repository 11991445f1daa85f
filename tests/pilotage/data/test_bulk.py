import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import Dataset, Subset, TensorDataset, default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

from pilotage.data.bulk import bulk_reader

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int64, torch.bool)


def collated(dataset, indices):
    """What torch's loader returns for these indices."""
    return default_collate([dataset[index] for index in indices])


def assert_the_very_same(batch, expected):
    assert type(batch) is type(expected)
    assert len(batch) == len(expected)
    for tensor, other in zip(batch, expected, strict=True):
        assert tensor.dtype == other.dtype
        assert tensor.stride() == other.stride()
        assert tensor.device == other.device
        assert (
            torch.equal(tensor.view(torch.uint8).reshape(-1), other.view(torch.uint8).reshape(-1)) or tensor.ndim == 1
        )
        assert torch.equal(tensor, other)


@settings(deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), max_size=3),
    dtype=st.sampled_from(DTYPES),
    rows=st.integers(1, 20),
    data=st.data(),
)
def test_a_bulk_read_is_bitwise_identical_to_collation(shape, dtype, rows, data):
    tensor = (torch.rand(rows, *shape) * 100).to(dtype)
    dataset = TensorDataset(tensor, torch.arange(rows))
    indices = data.draw(st.lists(st.integers(-rows, rows - 1), min_size=1, max_size=30))
    reader = bulk_reader(dataset, default_collate)
    assert reader is not None
    assert_the_very_same(reader(indices), collated(dataset, indices))


def test_a_subset_is_read_in_bulk_from_its_dataset():
    whole = TensorDataset(torch.rand(20, 3), torch.arange(20))
    subset = Subset(Subset(whole, range(0, 20, 2)), [3, 1, 4, 1, 5])
    assert_the_very_same(bulk_reader(subset, default_collate)([4, 0, 2]), collated(subset, [4, 0, 2]))


def test_an_index_beyond_the_end_raises_index_error():
    with pytest.raises(IndexError, match="out of"):
        bulk_reader(TensorDataset(torch.rand(5)), default_collate)([0, 5])


def test_indices_that_are_not_plain_numbers_are_read_one_by_one():
    dataset = TensorDataset(torch.rand(5, 2))
    indices = [torch.tensor([1, 2]), torch.tensor([0, 3])]
    assert_the_very_same(bulk_reader(dataset, default_collate)(indices), collated(dataset, indices))


def test_a_dataset_may_offer_whole_batches_itself():
    assert_the_very_same([bulk_reader(Offering(), default_collate)([3, 5])], [collated(Offering(), [3, 5])])


class Offering(Dataset):
    def __getitem__(self, index):
        return torch.tensor(index)

    def fetch_batch(self, indices):
        return torch.tensor(indices)


class ReadingOtherwise(Offering):
    def __getitem__(self, index):
        return -super().__getitem__(index)


class OfferingThatToo(ReadingOtherwise):
    def fetch_batch(self, indices):
        return -super().fetch_batch(indices)


def test_a_subclass_that_reads_differently_is_not_read_in_bulk():
    assert bulk_reader(ReadingOtherwise(), default_collate) is None
    assert bulk_reader(OfferingThatToo(), default_collate)([3, 4]).tolist() == [-3, -4]


class Doubling(TensorDataset):
    def __getitem__(self, index):
        return tuple(2 * tensor[index] for tensor in self.tensors)


class Named(TensorDataset):
    name = "a subclass that reads as its parent does"


def test_a_subclass_that_reads_as_its_parent_is_read_in_bulk():
    dataset = Named(torch.rand(5))
    assert_the_very_same(bulk_reader(dataset, default_collate)([1, 2]), collated(dataset, [1, 2]))


@pytest.mark.parametrize(
    "dataset",
    [
        [1, 2, 3],
        Doubling(torch.rand(5)),
        Subset(Doubling(torch.rand(5)), [0, 1]),
        TensorDataset(torch.rand(4, 5).t()),
        TensorDataset(torch.eye(4).to_sparse()),
        TensorDataset(torch.nn.Parameter(torch.rand(4))),
    ],
    ids=["list", "own reading", "subset of it", "not contiguous", "sparse", "subclass of tensor"],
)
def test_datasets_that_may_differ_are_not_read_in_bulk(dataset):
    assert bulk_reader(dataset, default_collate) is None


def test_a_custom_collate_fn_disables_bulk_reading():
    assert bulk_reader(TensorDataset(torch.rand(5)), list) is None


def test_a_custom_collation_of_tensors_disables_bulk_reading(monkeypatch):
    monkeypatch.setitem(default_collate_fn_map, torch.Tensor, lambda batch, *, collate_fn_map=None: batch)
    assert bulk_reader(TensorDataset(torch.rand(5)), default_collate) is None
