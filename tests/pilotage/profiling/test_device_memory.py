"""The memory of tensors, followed until it is freed."""

import torch

from pilotage.profiling.device_memory import LiveTensors, allocated_bytes, capacity_of, peak_bytes


def test_memory_counts_once_and_until_it_is_freed():
    live = LiveTensors()
    tensor = torch.zeros(256)
    assert live.add(tensor, "first", "weights")
    assert not live.add(tensor[:10], "a view", "temporaries")
    other = torch.zeros(16)
    live.add(other, "second", "activations", "layer", "file.py:3")
    assert live.total == 1088
    assert live.sums == {"weights": 1024, "activations": 64}
    view = tensor.view(16, 16)
    del tensor
    assert live.total == 1088
    del view
    assert live.total == 64
    (left,) = live.holdings()
    assert (left.name, left.bytes, left.category, left.module, left.line) == (
        "second", 64, "activations", "layer", "file.py:3",
    )  # fmt: skip


def test_memory_can_turn_out_to_be_something_else():
    live = LiveTensors()
    tensor = torch.zeros(8)
    live.add(tensor, "sum", "temporaries")
    live.rename(tensor, "gradient of weight", "gradients")
    assert {name: size for name, size in live.sums.items() if size} == {"gradients": 32}
    unseen = torch.zeros(2)
    live.rename(unseen, "gradient of bias", "gradients")
    assert live.total == 40


def test_empty_tensors_and_the_processor_have_nothing_to_count():
    live = LiveTensors()
    assert not live.add(torch.empty(0), "nothing", "inputs")
    assert allocated_bytes(torch.device("cpu")) is None
    assert peak_bytes(torch.device("cpu")) is None
    assert capacity_of(torch.device("cpu")) is None
