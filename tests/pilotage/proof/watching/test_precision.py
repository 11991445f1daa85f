import sys

import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.proof.watching.precision import (
    PrecisionWatch,
    _device_in,
    _is_discarded,
    last_product_type,
    weight_types,
)


def place():
    """The code and the place from which this function is called."""
    frame = sys._getframe(1)
    return frame.f_code, frame.f_lasti


def test_a_result_that_is_kept_is_not_discarded():
    assert not _is_discarded(*place())
    found = place()
    assert not _is_discarded(*found)


def test_a_result_that_is_thrown_away_is_discarded():
    seen = []

    def call():
        seen.append(place_of_caller())

    def place_of_caller():
        frame = sys._getframe(2)
        return frame.f_code, frame.f_lasti

    call()
    assert _is_discarded(*seen[0])


@pytest.mark.parametrize(
    ("given", "device"), [([torch.float16], None), (["cuda:1"], "cuda"), ([torch.device("cpu")], "cpu"), ([], None)]
)
def test_the_device_of_a_move_is_found_among_its_arguments(given, device):
    assert _device_in(given) == device


def test_a_cast_of_a_module_is_noted_with_its_line(line_of):
    notes = []

    class Watch:
        is_in_program = False

        def note(self, event, /, **fields):
            notes.append((event, fields["what"], fields["type"], fields["line"]))

    cast = PrecisionWatch(Watch())._asked("half", torch.nn.Module.half)
    cast(torch.nn.Linear(2, 2))  # casts to half
    assert notes == [("asked", "type", "float16", line_of("casts to half"))]


def classifier(x, *, enabled):
    """The loss of a network with convolutions, computed in bfloat16 if that is enabled."""
    network = nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3))
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        scores = network(x)
    return functional.cross_entropy(scores.float(), torch.zeros(len(x), dtype=torch.long))


@pytest.mark.parametrize(("enabled", "expected"), [(True, torch.bfloat16), (False, torch.float32)])
def test_the_type_of_the_last_product_is_read_from_the_graph_of_a_loss(enabled, expected):
    loss = classifier(torch.randn(4, 1, 8), enabled=enabled)
    assert last_product_type(loss) is expected
    assert last_product_type(3.0 * loss + 1.0) is expected


def test_a_loss_without_products_or_without_a_graph_has_no_last_product():
    weight = nn.Parameter(torch.ones(3))
    assert last_product_type((weight * 2).sum()) is None
    assert last_product_type(torch.ones(())) is None
    long = weight.sum()
    for _ in range(1000):
        long = long + 1.0
    assert last_product_type(long) is None


def test_what_is_compiled_has_no_last_product():
    network = torch.compile(nn.Linear(3, 3), backend="aot_eager")
    assert last_product_type(network(torch.ones(2, 3)).sum()) is None


def test_each_type_of_an_optimizers_weights_is_listed_once():
    weights = [nn.Parameter(torch.ones(2, dtype=kind)) for kind in (torch.float32, torch.bfloat16, torch.float32)]
    assert [*weight_types(torch.optim.SGD(weights, lr=0.1))] == [torch.float32, torch.bfloat16]
