import torch

from pilotage.data.shuffle import EpochShuffle


def test_one_generator_carries_on_from_epoch_to_epoch():
    shuffle, generator = EpochShuffle(5), torch.Generator().manual_seed(5)
    for epoch in range(3):
        assert shuffle.epochs_drawn == epoch
        assert torch.equal(shuffle.draw(40), torch.randperm(40, generator=generator))


def test_the_global_random_stream_is_left_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    EpochShuffle(5).draw(40)
    assert torch.equal(torch.rand(3), expected)
