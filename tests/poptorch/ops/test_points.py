import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import poptorch
from poptorch.poptorch_core import Error

coordinates = st.floats(-100, 100, width=16)


def clouds(dimensions=3, largest=12):
    return st.lists(st.lists(coordinates, min_size=dimensions, max_size=dimensions), min_size=1, max_size=largest).map(
        torch.tensor
    )


def farthest(points, samples, first=0):
    """Farthest-point sampling by its definition."""
    chosen = [first]
    while len(chosen) < samples:
        gaps = [min(math.dist(point, points[other]) for other in chosen) for point in points]
        chosen.append(gaps.index(max(gaps)))
    return chosen


@settings(max_examples=40, deadline=None)
@given(clouds(), st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0]))
def test_the_farthest_points_are_sampled(points, ratio):
    # Distinct points, so that the order of equal distances does not matter.
    points = torch.unique(points, dim=0) + torch.arange(3) * 1e-3
    samples = math.ceil(len(points) * ratio)
    found = poptorch.fps(points, [0, len(points)], ratio).tolist()
    assert len(set(found)) == len(found) == samples
    gaps_found = [min(math.dist(points[i], points[j]) for j in found[:k]) for k, i in enumerate(found) if k]
    expected = farthest(points.tolist(), samples)
    gaps_expected = [min(math.dist(points[i], points[j]) for j in expected[:k]) for k, i in enumerate(expected) if k]
    assert found[0] == 0
    assert gaps_found == pytest.approx(gaps_expected, rel=1e-4)


def test_each_group_of_points_is_sampled_separately(compiled, tier):
    points = torch.tensor([[0.0], [1.0], [10.0], [5.0], [6.0], [50.0], [7.0]])
    expected = [0, 2, 3, 5]
    run = compiled(lambda x: poptorch.fps(x, [0, 3, 7]), tier=tier)
    assert run(points).tolist() == poptorch.fps(points, [0, 3, 7]).tolist() == expected
    moved = points.clone()
    moved[1] = 100.0
    assert run(moved).tolist() == [0, 1, 3, 5]


def test_a_random_start_is_drawn_again_at_each_run(compiled):
    points = torch.arange(50.0)[:, None]
    run = compiled(lambda x: poptorch.fps(x, [0, 25, 50], 0.04, random_start=True))
    torch.manual_seed(3)
    drawn = [tuple(run(points).tolist()) for _ in range(20)]
    assert len(set(drawn)) > 5
    assert all(0 <= first < 25 <= second < 50 for first, second in drawn)


@pytest.mark.parametrize(
    "arguments",
    [
        ([1.0], [0, 1]),
        (torch.ones(1, 1), torch.tensor([0, 1])),
        (torch.ones(1, 1), [0, "1"]),
        (torch.ones(1, 1), [0, 1], "half"),
        (torch.ones(1, 1), [0, 1], 0.0),
        (torch.ones(1, 1), [0, 1], 1.5),
    ],
)
def test_sampling_checks_its_arguments(arguments):
    with pytest.raises(Error, match=r"poptorch\.fps takes"):
        poptorch.fps(*arguments)


def nearest_by_definition(x, y, batch_x, batch_y):
    return [
        min(
            (math.dist(point, other), j)
            for j, (other, batch) in enumerate(zip(y.tolist(), batch_y, strict=True))
            if batch == own
        )[0]
        for point, own in zip(x.tolist(), batch_x, strict=True)
    ]


@settings(max_examples=40, deadline=None)
@given(clouds(), clouds(), st.data())
def test_the_nearest_point_of_the_same_batch_is_found(x, y, data):
    batch_y = data.draw(st.lists(st.integers(0, 2), min_size=len(y), max_size=len(y)))
    batch_x = data.draw(st.lists(st.sampled_from(batch_y), min_size=len(x), max_size=len(x)))
    expected = nearest_by_definition(x, y, batch_x, batch_y)
    for as_batch in (list, torch.tensor):
        found = poptorch.nearest(x, y, as_batch(batch_x), as_batch(batch_y)).tolist()
        assert [batch_y[j] for j in found] == batch_x
        assert [math.dist(x[i], y[j]) for i, j in enumerate(found)] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_without_batches_all_points_are_searched(compiled, tier):
    x, y = torch.tensor([[0.0, 0.0], [9.0, 9.0]]), torch.tensor([[10.0, 8.0], [1.0, -1.0]])
    assert poptorch.nearest(x, y).tolist() == [1, 0]
    run = compiled(poptorch.nearest, tier=tier)
    assert run(x, y).tolist() == [1, 0]
    assert run(y, x).tolist() == [1, 0]
    assert poptorch.nearest(x[:, 0], y[:, 0]).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32])
def test_the_search_takes_points_of_any_type(compiled, dtype):
    x, y = torch.tensor([[0, 0], [9, 9]], dtype=dtype), torch.tensor([[10, 8], [1, -1]], dtype=dtype)
    assert poptorch.nearest(x, y).tolist() == compiled(poptorch.nearest)(x, y).tolist() == [1, 0]


@pytest.mark.parametrize("arguments", [([1.0], X := torch.ones(1, 1)), (X, 3), (X, X, 3, [0]), (X, X, [0], "a")])
def test_the_search_checks_its_arguments(arguments):
    with pytest.raises(Error, match=r"poptorch\.nearest takes"):
        poptorch.nearest(*arguments)
