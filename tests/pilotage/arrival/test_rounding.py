from concurrent.futures import ThreadPoolExecutor

import torch

from pilotage.arrival.rounding import InFloat64, OtherRounding


def test_results_change_in_their_last_place():
    x = torch.rand(1000) + 1
    with OtherRounding(0):
        changed = x * 3
    assert not torch.equal(changed, x * 3)
    torch.testing.assert_close(changed, x * 3, rtol=2e-7, atol=0)


def test_the_change_depends_only_on_the_seed():
    x = torch.rand(100)

    def rounded(seed):
        with OtherRounding(seed):
            return x.exp()

    assert torch.equal(rounded(1), rounded(1))
    assert not torch.equal(rounded(1), rounded(2))


def test_views_and_written_tensors_stay_as_they_are():
    x = torch.rand(10)
    with OtherRounding(0):
        view = x.view(2, 5)
        x.mul_(2)
    assert torch.equal(view.flatten(), x)


def test_random_numbers_are_the_same_in_float64():
    torch.manual_seed(0)
    drawn, dropped, numbers = torch.rand(5), torch.nn.functional.dropout(torch.ones(50)), torch.randint(9, (4,))
    torch.manual_seed(0)
    with InFloat64():
        wide, wide_dropped, same = torch.rand(5), torch.nn.functional.dropout(torch.ones(50)), torch.randint(9, (4,))
    assert wide.dtype == torch.float64
    assert torch.equal(wide.float(), drawn)
    assert torch.equal(wide_dropped.float(), dropped)
    assert torch.equal(same, numbers)


def test_casts_and_new_tensors_stay_in_float64():
    with InFloat64():
        x = torch.ones(3)
        narrow = (x / 3).float() + torch.zeros(3, dtype=torch.bfloat16)
        places = torch.arange(3)
    assert narrow.tolist() == [1 / 3] * 3
    assert places.dtype == torch.int64


def test_other_threads_keep_their_type():
    with InFloat64(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: torch.ones(1).dtype).result() == torch.float32
