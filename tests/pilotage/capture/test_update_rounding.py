import pytest
import torch

from pilotage.capture.update import round_at_random, rounded


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_value_becomes_one_of_its_two_neighbours_and_the_mean_is_right(dtype):
    torch.manual_seed(0)
    below = torch.tensor(1.0, dtype=dtype)
    above = torch.nextafter(below, torch.tensor(2.0, dtype=dtype))
    step = (above.float() - below.float()).item()
    drawn = round_at_random(torch.full((20_000,), 1.0 + 0.25 * step), dtype)
    assert set(drawn.unique().tolist()) == {below.item(), above.item()}
    assert (drawn.float().mean().item() - 1.0) / step == pytest.approx(0.25, abs=0.02)


def test_a_representable_value_is_kept():
    values = torch.tensor([-3.0, 0.0, 0.5, 1024.0])
    assert torch.equal(round_at_random(values, torch.float16), values.half())


def test_updates_too_small_for_the_type_are_preserved_on_average():
    torch.manual_seed(0)
    weights = torch.ones(20_000, dtype=torch.float16)
    for _ in range(8):
        with rounded([weights], at_random=True) as (target,):
            target.add_(1e-4)
    assert weights.float().mean().item() == pytest.approx(1 + 8e-4, abs=5e-5)
    lost = torch.ones(1, dtype=torch.float16)
    for _ in range(8):
        with rounded([lost], at_random=False) as (target,):
            target.add_(1e-4)
    assert lost.item() == 1.0


def test_wide_weights_are_updated_directly():
    weights = torch.zeros(3)
    with rounded([weights], at_random=True) as (target,):
        assert target is weights
