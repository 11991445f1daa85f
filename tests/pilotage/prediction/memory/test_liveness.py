from pilotage.prediction.memory.liveness import liveness
from pilotage.prediction.trace.operations import Category, TracedTensor


def tensor(name, size, first, last, category=Category.TEMPORARIES):
    return TracedTensor(name=name, bytes=size, category=category, first=first, last=last)


def test_the_peak_is_where_most_bytes_live_at_once():
    tensors = [
        tensor("weights", 100, -1, 1 << 60, Category.WEIGHTS),
        tensor("a", 10, 0, 2),
        tensor("b", 20, 1, 1),
        tensor("c", 5, 2, 3),
    ]
    found = liveness(tensors, {}, 4, lambda each: each.bytes)
    assert found.totals == (110, 130, 115, 105)
    assert (found.peak, found.peak_bytes) == (1, 130)
    assert [each.name for each, _ in found.live] == ["weights", "b", "a"]
    assert found.at_peak() == {"weights": 100, "temporaries": 30}


def test_what_a_device_adds_counts_where_it_is_needed():
    found = liveness([tensor("a", 10, 0, 1)], {"code": [3, 3], "temporaries": [0, 50]}, 2, lambda each: each.bytes)
    assert found.totals == (13, 63)
    assert found.at_peak() == {"temporaries": 60, "code": 3}


def test_a_program_without_operations_has_its_state():
    found = liveness([tensor("weights", 7, -1, 1 << 60, Category.WEIGHTS)], {}, 0, lambda each: each.bytes)
    assert found.peak_bytes == 7
