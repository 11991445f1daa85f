import pytest
import torch

from pilotage.proof.watching.digests import digest_weights
from pilotage.proof.weights import distance, match_weights, total_distance


def digests(*tensors):
    return digest_weights((str(number), tensor) for number, tensor in enumerate(tensors))


@pytest.mark.parametrize("count", [5, 1000, 16_385, 97_200, 100_000, 100_003])
def test_the_distance_of_digests_estimates_that_of_the_tensors(count):
    torch.manual_seed(1)
    left = torch.randn(count)
    right = left + 1e-3 * torch.randn(count)
    (first, second) = digests(left, right)
    assert distance(first, second) == pytest.approx(float((left - right).norm()), rel=0.7)
    assert distance(first, first) == 0


def test_weights_are_matched_by_shape_and_closeness_in_any_order():
    a, b, c = torch.randn(3, 4), torch.randn(3, 4), torch.randn(7)
    pairs = match_weights(digests(a, b, c), digests(c + 1e-6, b + 1e-6, a + 1e-6))
    assert [(left["name"], right["name"]) for left, right in pairs] == [("0", "2"), ("1", "1"), ("2", "0")]
    assert total_distance(pairs) < 1e-4


def test_equal_weights_are_matched_in_their_order():
    pairs = match_weights(digests(torch.zeros(3), torch.zeros(3)), digests(torch.zeros(3), torch.zeros(3)))
    assert [right["name"] for _, right in pairs] == ["0", "1"]
