from collections import UserDict
from types import SimpleNamespace

import pytest
import torch

from pilotage.proof.watching.digests import _layout as sketch_layout
from pilotage.proof.watching.digests import (
    content_digest,
    digest_weights,
    picked_elements,
    sample_digests,
    sketch_texts,
    sketch_weights,
    tensors_in,
)


def digests(*tensors):
    return digest_weights((str(number), tensor) for number, tensor in enumerate(tensors))


@pytest.mark.parametrize("place", [0, 16_384, 97_199, -1])
@pytest.mark.parametrize("count", [97_200, 100_003])
def test_every_element_of_a_long_tensor_counts_once(count, place):
    tensor = torch.zeros(count)
    tensor[place] = 3.0
    assert digests(tensor)[0]["norm"] == 3.0


def test_the_digest_of_a_tensor_does_not_depend_on_its_neighbours_or_its_type():
    tensors = [torch.randn(3, 5), torch.randn(97_200), torch.randn(16)]
    together = digests(*tensors)
    assert [each["sketch"] for each in together] == [
        each["sketch"] for tensor in tensors for each in digests(tensor.double())
    ]


def test_no_weights_have_an_empty_digest():
    assert sketch_texts([sketch_weights([])]) == [""]
    assert digests() == []


@pytest.mark.parametrize("count", [1, 16, 40, 97_200])
def test_digesting_leaves_a_single_weight_as_it_was(count):
    weight = torch.nn.Parameter(torch.ones(count))
    assert digests(weight) == digests(weight)
    assert torch.equal(weight, torch.ones(count))


def test_sketches_of_the_same_weights_are_written_together():
    weights = [torch.randn(3, 5), torch.randn(40)]
    later = [each + 1 for each in weights]
    sketches = [sketch_weights(weights), sketch_weights(later)]
    assert sketch_texts(sketches) == [*sketch_texts(sketches[:1]), *sketch_texts(sketches[1:])]
    assert sketch_texts(sketches)[0] != sketch_texts(sketches)[1]


def test_an_empty_weight_has_an_empty_sketch_between_others():
    weights = [torch.randn(20), torch.empty(0), torch.randn(20)]
    assert [each["norm"] for each in digests(*weights)] == [
        digests(weights[0])[0]["norm"],
        0.0,
        digests(weights[2])[0]["norm"],
    ]


def test_weights_that_are_not_contiguous_have_the_digest_of_their_copies():
    weights = torch.randn(300, 400).t()
    assert digests(weights)[0]["sketch"] == digests(weights.contiguous())[0]["sketch"]


def test_tensors_are_found_in_nested_batches():
    a, b, c = torch.ones(1), torch.ones(2), torch.ones(3)
    assert [each.numel() for each in tensors_in([a, {"x": b, "y": [c, "text"]}, 3])] == [1, 2, 3]


@pytest.mark.parametrize("kind", [SimpleNamespace, lambda **tensors: UserDict(tensors)])
def test_tensors_are_found_in_batches_of_other_classes(kind):
    a, b = torch.ones(1), torch.ones(2)
    assert [each.numel() for each in tensors_in(kind(a=a, b=b, c="text"))] == [1, 2]
    assert [each.numel() for each in tensors_in((kind(a=a), b))] == [1, 2]
    assert not tensors_in(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool])
def test_the_digest_of_a_batch_shows_other_values(kind):
    batch = (torch.arange(24).reshape(4, 6) % 2).to(kind)
    other = batch.clone()
    other[2, 3] = 0
    picked = picked_elements([batch])
    assert content_digest(picked) == content_digest(picked_elements([batch.clone()]))
    assert content_digest(picked) != content_digest(picked_elements([other]))
    batch.copy_(other)
    assert content_digest(picked) != content_digest(picked_elements([batch]))


@pytest.mark.parametrize(
    "batch",
    [
        torch.arange(5000.0),
        torch.arange(6000.0)[1000:],
        torch.arange(6000.0)[::3],
        torch.arange(6000.0).reshape(60, 100).t(),
        torch.arange(3.0).expand(700, 3),
        torch.tensor(3.0),
        torch.empty(0, 4),
    ],
    ids=["whole", "offset", "strided", "transposed", "expanded", "number", "empty"],
)
def test_every_nth_element_of_a_batch_is_picked_in_any_layout(batch):
    flat = batch.reshape(-1)
    (picked,) = picked_elements([batch])
    assert torch.equal(picked, flat[:: max(1, len(flat) // 512)])


def test_samples_without_numbers_are_told_apart_by_their_values():
    batch = torch.randn(5, 3, 8)
    values = sample_digests([batch])
    assert len(set(values)) == 5
    assert sample_digests([batch[[4, 0]]]) == [values[4], values[0]]
    assert sample_digests([torch.tensor(1.0)]) == []


@pytest.fixture
def float64_by_default():
    torch.set_default_dtype(torch.float64)
    sketch_layout.cache_clear()
    yield
    torch.set_default_dtype(torch.float32)
    sketch_layout.cache_clear()


def test_a_digest_does_not_depend_on_the_default_type(float64_by_default):
    weights = [torch.arange(1, 16, dtype=torch.float32), torch.ones(97_200, dtype=torch.float64)]
    (text,) = sketch_texts([sketch_weights(weights)])
    torch.set_default_dtype(torch.float32)
    sketch_layout.cache_clear()
    assert [text] == sketch_texts([sketch_weights(weights)])
    assert sketch_weights([]).dtype is torch.float32


@pytest.mark.parametrize("kind", [torch.complex64, torch.complex128])
def test_the_digest_of_complex_weights_shows_their_imaginary_parts(kind):
    weights = torch.ones(5, 3, dtype=kind)
    other = weights + torch.zeros(5, 3) * 1j
    other.imag[2, 1] = 3.0
    (first,), (second,) = digests(weights), digests(other)
    assert first["shape"] == second["shape"] == [5, 3]
    assert first["sketch"] != second["sketch"]
    assert digests(other.conj())[0]["sketch"] == digests(other.conj().resolve_conj())[0]["sketch"]
