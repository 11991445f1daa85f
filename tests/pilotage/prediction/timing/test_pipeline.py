import pytest

from pilotage.prediction.devices.model import Link
from pilotage.prediction.timing.collectives import sum_seconds
from pilotage.prediction.timing.pipeline import StageSeconds, pipeline_schedule


def stages(*forward):
    return [StageSeconds(forward=each, backward=2 * each) for each in forward]


def test_equal_stages_wait_only_at_the_ends():
    found = pipeline_schedule(stages(1.0, 1.0, 1.0, 1.0), 8)
    assert found.seconds == pytest.approx((8 + 3) * 3.0)
    assert found.bubble == pytest.approx(3 / 11)


def test_more_micro_batches_fill_the_bubble():
    bubbles = [pipeline_schedule(stages(1.0, 1.0), count).bubble for count in (1, 4, 32)]
    assert bubbles == sorted(bubbles, reverse=True)
    assert bubbles[0] == pytest.approx(0.5)


def test_the_slowest_stage_decides():
    found = pipeline_schedule(stages(1.0, 3.0), 100)
    assert found.seconds == pytest.approx(100 * 9.0, rel=0.02)


def test_every_stage_runs_each_micro_batch_forward_and_backward_in_order():
    found = pipeline_schedule([*stages(1.0), StageSeconds(forward=1.0, backward=2.0, update=0.5)], 3)
    for number in range(3):
        mine = {(each.stage, each.phase): each for each in found.entries if each.micro_batch == number}
        assert mine[0, "forward"].end <= mine[1, "forward"].start
        assert mine[1, "forward"].end <= mine[1, "backward"].start
        assert mine[1, "backward"].end <= mine[0, "backward"].start
    updates = [each for each in found.entries if each.phase == "update"]
    assert [each.stage for each in updates] == [1]
    assert found.seconds == pytest.approx(updates[0].end)


def test_sums_over_replicas_take_the_ring_and_the_farther_link_beyond_a_group():
    link = Link(bytes_per_second=1e9, latency_seconds=0.0, group=4, far_bytes_per_second=1e8)
    assert sum_seconds(10**9, 1, link) == 0
    assert sum_seconds(10**9, 2, link) == pytest.approx(1.0)
    assert sum_seconds(10**9, 4, link) == pytest.approx(1.5)
    assert sum_seconds(10**9, 8, link) == pytest.approx(17.5)
