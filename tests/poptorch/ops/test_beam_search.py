import itertools
import math
from collections import defaultdict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import poptorch
from poptorch.poptorch_core import Error


def path_of(alignment, blank):
    return tuple(label for label, _ in itertools.groupby(alignment) if label != blank)


def best_by_definition(rows, blank):
    """Every path with the sum of the probabilities of all its alignments, the likeliest first."""
    totals = defaultdict(float)
    for alignment in itertools.product(range(len(rows[0])), repeat=len(rows)):
        probability = math.exp(sum(row[label] for row, label in zip(rows, alignment, strict=True)))
        totals[path_of(alignment, blank)] += probability
    return sorted(totals.items(), key=lambda entry: -entry[1])


def random_probs(steps, samples, classes, seed):
    return torch.randn(steps, samples, classes, generator=torch.Generator().manual_seed(seed)).log_softmax(-1)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(2, 3), st.integers(0, 2), st.integers(0, 10**6))
def test_a_wide_beam_finds_the_likeliest_paths(steps, classes, blank, seed):
    blank = min(blank, classes - 1)
    probs = random_probs(steps, 2, classes, seed)
    scores, lengths, paths = poptorch.ctc_beam_search_decoder(
        probs, torch.tensor([steps, steps]), blank=blank, beam_width=200, top_paths=3
    )
    assert (scores.shape, lengths.shape, paths.shape) == ((2, 3), (2, 3), (2, 3, steps))
    for sample in range(2):
        expected = best_by_definition(probs[:, sample].tolist(), blank)
        for rank, (path, probability) in enumerate(expected[:3]):
            assert float(scores[sample, rank]) == pytest.approx(math.log(probability), abs=1e-4)
            length = int(lengths[sample, rank])
            found = tuple(paths[sample, rank, :length].tolist())
            assert found == path or dict(expected)[found] == pytest.approx(probability, rel=1e-4)
            assert paths[sample, rank, length:].tolist() == [blank] * (steps - length)


def test_samples_are_decoded_up_to_their_length():
    probs = random_probs(6, 2, 3, seed=1)
    both = poptorch.ctc_beam_search_decoder(probs, torch.tensor([6, 4]))
    short = poptorch.ctc_beam_search_decoder(probs[:4, 1:], torch.tensor([4]))
    assert torch.equal(both[0][1:], short[0])
    assert torch.equal(both[1][1:], short[1])
    assert torch.equal(both[2][1:, :, :4], short[2])


def test_paths_that_do_not_exist_have_probability_zero():
    scores, lengths, _ = poptorch.ctc_beam_search_decoder(
        torch.zeros(1, 1, 2).log_softmax(-1), torch.tensor([1]), top_paths=3
    )
    assert scores[0, 2] == -math.inf
    assert lengths[0, 2] == 0


def test_a_program_decodes_the_data_of_each_run(compiled, tier):
    class Decoder(nn.Module):
        def forward(self, probs, lengths):
            return poptorch.ctc_beam_search_decoder(probs, lengths, blank=2, beam_width=5, top_paths=2)

    run = compiled(Decoder(), tier=tier)
    for seed in range(3):
        probs, lengths = random_probs(7, 3, 4, seed), torch.tensor([7, 5, 6])
        assert all(map(torch.equal, run(probs, lengths), Decoder()(probs, lengths)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1], torch.tensor([1])), "as probs"),
        ((torch.zeros(1, 1, 2), [1]), "as lengths"),
        ((torch.zeros(1, 2), torch.tensor([1])), "time, sample, class"),
        ((torch.zeros(1, 1, 2), torch.tensor([1, 1])), "one length per sample"),
        ((torch.zeros(1, 1, 2), torch.tensor([1]), 2), "one of the 2 classes as blank"),
        ((torch.zeros(1, 1, 2), torch.tensor([1]), 0, 0), "beam_width"),
        ((torch.zeros(1, 1, 2), torch.tensor([1]), 0, 2, 1.5), "top_paths"),
        ((torch.zeros(1, 1, 2), torch.tensor([1]), 0, 2, 3), "3 paths out of a beam of 2"),
    ],
)
def test_decoding_checks_its_arguments(arguments, words):
    with pytest.raises(Error, match=words):
        poptorch.ctc_beam_search_decoder(*arguments)
