import pytest
import torch

from pilotage.capture.update import round_at_random, rounded


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_value_becomes_one_of_its_two_neighbours_and_the_mean_is_right(dtype):
    below = torch.tensor(1.0, dtype=dtype)
    above = torch.nextafter(below, torch.tensor(2.0, dtype=dtype))
    step = (above.float() - below.float()).item()
    drawn = round_at_random(torch.full((20_000,), 1.0 + 0.25 * step), dtype, torch.tensor(3), "weight")
    assert set(drawn.unique().tolist()) == {below.item(), above.item()}
    assert (drawn.float().mean().item() - 1.0) / step == pytest.approx(0.25, abs=0.02)


def test_a_representable_value_is_kept():
    values = torch.tensor([-3.0, 0.0, 0.5, 1024.0])
    assert torch.equal(round_at_random(values, torch.float16, torch.tensor(0), "weight"), values.half())


def test_updates_too_small_for_the_type_are_preserved_on_average():
    weights = torch.ones(20_000, dtype=torch.float16)
    for number in range(8):
        with rounded({"weight": weights}, torch.tensor(number)) as (target,):
            target.add_(1e-4)
    assert weights.float().mean().item() == pytest.approx(1 + 8e-4, abs=5e-5)
    lost = torch.ones(1, dtype=torch.float16)
    for _ in range(8):
        with rounded({"lost": lost}, None) as (target,):
            target.add_(1e-4)
    assert lost.item() == 1.0


def test_wide_weights_are_updated_directly():
    weights = torch.zeros(3)
    with rounded({"weights": weights}, torch.tensor(0)) as (target,):
        assert target is weights


def test_processes_with_other_random_streams_round_alike():
    values = torch.linspace(-1, 1, 5_000)
    found = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        found.append(round_at_random(values, torch.float16, torch.tensor(7), "weight"))
    assert torch.equal(*found)


def test_updates_weights_and_positions_are_rounded_independently():
    values = torch.full((20_000,), 1.0 + 2.0**-11)
    drawn = [
        round_at_random(values, torch.float16, torch.tensor(update), name) > 1
        for update, name in ((0, "a"), (1, "a"), (0, "b"), (2, "b"))
    ]
    ups = torch.stack([each.double() for each in drawn])
    assert ups.mean(1).tolist() == pytest.approx([0.5] * 4, abs=0.02)
    assert torch.corrcoef(ups).triu(1).abs().max() < 0.03
    assert torch.corrcoef(torch.stack((ups[0, :-1], ups[0, 1:]))).triu(1).abs().max() < 0.03
