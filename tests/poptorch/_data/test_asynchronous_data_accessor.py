import inspect
import os
import signal

import pytest
import torch
from torch.utils.data import TensorDataset

from poptorch._args_parser import ICustomArgParser, registerCustomArgParser
from poptorch._data.asynchronous_data_accessor import AsynchronousDataAccessor
from poptorch._dataloader import DataLoader
from poptorch.enums import DataLoaderMode, SharingStrategy
from poptorch.options import Options
from poptorch.poptorch_core import Error

pytestmark = pytest.mark.slow

SIXTEEN = TensorDataset(torch.arange(16))


def accessor_of(dataset, **arguments):
    return AsynchronousDataAccessor(dataset, sharing_strategy=SharingStrategy.Fork, **arguments)


class Failing:
    def __init__(self, good):
        self.good = good

    def __len__(self):
        return 10

    def __iter__(self):
        for number in range(self.good):
            yield torch.tensor([number])
        raise ValueError("a bad sample")


def test_the_arguments_have_the_documented_order_and_defaults():
    parameters = inspect.signature(AsynchronousDataAccessor).parameters
    assert {name: each.default for name, each in list(parameters.items())[1:]} == {
        "buffer_size": 3,
        "miss_sleep_time_in_ms": 0.1,
        "load_indefinitely": True,
        "early_preload": False,
        "sharing_strategy": SharingStrategy.ForkServer,
        "rebatched_size": None,
    }
    assert next(iter(parameters)) == "dataset"


def test_any_iterable_of_tensors_is_read():
    accessor = AsynchronousDataAccessor([torch.tensor([number]) for number in range(5)])
    for _ in range(2):
        assert [int(item) for item in accessor] == list(range(5))
    assert len(accessor) == 5
    assert iter(accessor) is accessor
    accessor.terminate()


def test_a_loader_is_read():
    accessor = accessor_of(DataLoader(Options().deviceIterations(2), SIXTEEN, 4))
    assert [batch.tolist() for (batch,) in accessor] == [list(range(8)), list(range(8, 16))]
    assert len(accessor) == 2
    accessor.terminate()


@pytest.mark.parametrize(
    ("item", "kind"),
    [(torch.ones(2), torch.Tensor), ((torch.ones(2), torch.zeros(1)), list), ({"b": torch.ones(2)}, dict)],
    ids=["tensor", "tuple", "dict"],
)
def test_the_documented_items_arrive(item, kind):
    accessor = accessor_of([item, item])
    for arrived in accessor:
        assert type(arrived) is kind
        torch.testing.assert_close(arrived, list(item) if kind is list else item)
    accessor.terminate()


class Pair:
    def __init__(self, left, right, name):
        self.left, self.right, self.name = left, right, name


class PairParser(ICustomArgParser):
    def yieldTensors(self, struct):  # noqa: N802
        yield struct.left
        yield struct.right

    def reconstruct(self, original_structure, tensor_iterator):
        return Pair(next(tensor_iterator), next(tensor_iterator), original_structure.name)


def test_objects_with_a_registered_parser_arrive():
    pairs = [Pair(torch.ones(2) * number, torch.zeros(1), "pair") for number in range(3)]
    with pytest.raises(Error, match="worker thread failed to start"):
        accessor_of(pairs)
    registerCustomArgParser(Pair, PairParser())
    try:
        accessor = accessor_of(pairs)
        arrived = [(item.left.tolist(), item.name) for item in accessor]
    finally:
        registerCustomArgParser(Pair, None)
    assert arrived == [([float(number)] * 2, "pair") for number in range(3)]
    accessor.terminate()


def test_a_loader_with_an_accessor_is_refused():
    loader = DataLoader(
        Options(), SIXTEEN, mode=DataLoaderMode.Async, async_options={"sharing_strategy": SharingStrategy.Fork}
    )
    with pytest.raises(Error, match="already"):
        accessor_of(loader)
    loader.terminate()


def test_a_loader_with_a_smaller_last_batch_has_to_be_rebatched():
    loader = DataLoader(Options(), SIXTEEN, 3, drop_last=False)
    with pytest.raises(AssertionError, match="rebatched_size"):
        accessor_of(loader)
    accessor = accessor_of(loader, rebatched_size=5)
    assert [batch.tolist() for (batch,) in accessor] == [list(range(5)), list(range(5, 10)), list(range(10, 15))]
    assert len(accessor) == 3
    accessor.terminate()


def test_a_loader_of_single_samples_needs_no_rebatching():
    accessor = accessor_of(DataLoader(Options(), SIXTEEN, drop_last=False))
    assert len(list(accessor)) == 16
    accessor.terminate()


@pytest.mark.parametrize("size", [1, 0, -3])
def test_rebatching_to_one_or_less_is_refused(size):
    with pytest.raises(AssertionError, match="greater than 1"):
        accessor_of([torch.ones(1)], rebatched_size=size)


def test_a_sharing_strategy_of_another_type_is_refused():
    with pytest.raises(AssertionError, match="SharingStrategy"):
        AsynchronousDataAccessor([torch.ones(1)], sharing_strategy="fork")


@pytest.mark.parametrize("dataset", [Failing(0), [], [["no", "tensors"]], [[torch.ones(1), [torch.ones(1)]]]])
def test_a_start_that_fails_is_an_error_of_poptorch(dataset):
    with pytest.raises(Error, match="worker thread failed to start") as caught:
        accessor_of(dataset)
    assert caught.value.type == "poptorch_py_error"


def test_an_empty_dataset_is_reported_as_such():
    with pytest.raises(Error, match="dataset is empty"):
        accessor_of([])


def test_a_later_failure_is_an_assertion_with_the_cause():
    accessor = accessor_of(Failing(3))
    with pytest.raises(AssertionError, match=r"An error occurred in the data fetcher(.|\n)*ValueError: a bad sample"):
        list(accessor)
    with pytest.raises(AssertionError, match="An error occurred in the data fetcher"):
        iter(accessor)


def test_a_worker_that_is_killed_is_a_failure_too():
    class Dying:
        def __iter__(self):
            yield torch.ones(1)
            os.kill(os.getpid(), signal.SIGKILL)

    accessor = accessor_of(Dying())
    with pytest.raises(AssertionError, match="An error occurred in the data fetcher"):
        list(accessor)


def test_an_epoch_can_be_restarted_in_the_middle():
    accessor = accessor_of([torch.tensor([number]) for number in range(10)])
    for item in accessor:
        if int(item) == 4:
            break
    assert [int(item) for item in accessor] == list(range(10))
    accessor.terminate()


def test_the_sleep_after_a_miss_is_passed_on(monkeypatch):
    naps = []
    monkeypatch.setattr("pilotage.data.prefetcher.time.sleep", naps.append)
    accessor = accessor_of([torch.ones(1)], miss_sleep_time_in_ms=250)
    list(accessor)
    assert set(naps) == {0.25}
    accessor.terminate()


def test_the_worker_shows_which_slots_of_the_ring_are_filled():
    accessor = accessor_of([torch.tensor([number]) for number in range(5)], buffer_size=4)
    assert accessor._worker._data_buffers.indices_mem.tolist() == [True, False, False, False]
    assert [int(item) for item in accessor] == list(range(5))
    accessor.terminate()
    assert accessor._worker is None


def test_an_early_start_fills_the_ring_before_the_first_epoch():
    accessor = accessor_of([torch.tensor([number]) for number in range(9)], buffer_size=3, early_preload=True)
    while not accessor._worker._data_buffers.indices_mem.all():
        accessor._prefetcher._channel.wait()
    assert [int(item) for item in accessor] == list(range(9))
    accessor.terminate()


def test_processes_are_named_in_the_log_and_a_failure_shows_the_workers_traceback(caplog):
    with caplog.at_level("DEBUG", "poptorch::python"):
        accessor = accessor_of([torch.ones(1)])
        assert f"AsynchronousDataAccessor worker process: {accessor._prefetcher.process_id}" in caplog.messages
        assert f"AsynchronousDataAccessor parent process: {os.getpid()}" in caplog.messages
        accessor.terminate()
    with pytest.raises(Error, match="AsynchronousDataAccessor worker thread failed to start"):
        accessor_of(Failing(0))
    assert "ValueError: a bad sample" in caplog.text
    assert "Traceback" in caplog.text


def test_items_of_another_type_are_converted_to_that_of_the_first():
    accessor = accessor_of([torch.tensor([0.5]), torch.tensor([3])])
    items = [item.clone() for item in accessor]
    assert [(item.dtype, item.item()) for item in items] == [(torch.float32, 0.5), (torch.float32, 3.0)]
    accessor.terminate()
