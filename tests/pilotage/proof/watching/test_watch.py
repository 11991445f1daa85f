import json

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pilotage.proof.records import read_run
from pilotage.proof.watching import digests
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.watch import EXTRA_UPDATES, EnoughSteps, Watch, mean_loss


@pytest.fixture
def watch(tmp_path):
    return Watch(WatchSettings(folder=str(tmp_path), steps=12))


def update(watch, loss=1.0):
    watch.pending.losses.append(torch.tensor(loss))
    watch.close({"line": "train.py:3", "mode": "eager", "rates": [0.1]})


def test_weights_are_digested_at_first_each_time_then_after_every_tenth_update_and_the_last(tmp_path):
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=32))
    weights = [("weight", torch.ones(3))]
    watch.before_update(lambda: weights)
    watch.weights = lambda: weights
    for number in range(32):
        update(watch, float(number))
    run = read_run(tmp_path)
    assert sorted(run.first.weights) == [*range(11), 20, 30, 32]
    assert [each.losses[0] for each in run.first.updates] == list(range(32))


def test_sketches_of_weights_that_moved_to_another_device_are_not_fetched_together(tmp_path, monkeypatch):
    sketched = []
    monkeypatch.setattr(digests, "sketch_weights", lambda tensors: tensors[0].device)
    monkeypatch.setattr(digests, "sketch_texts", lambda sketches: sketched.append({*sketches}) or [""] * len(sketches))
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=32))
    for number in range(8):
        moved = [("weight", torch.ones(3, device="cpu" if number < 6 else "meta"))]
        watch.weights = lambda moved=moved: moved
        watch.record.due = float("inf")
        update(watch)
    watch.write()
    assert {device for devices in sketched for device in devices} == {torch.device("cpu"), torch.device("meta")}
    assert all(len(devices) == 1 for devices in sketched)


def test_the_last_update_of_a_script_that_ends_early_has_a_digest(tmp_path):
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=50))
    tensor = torch.zeros(3)
    watch.before_update(lambda: [("weight", tensor)])
    watch.weights = lambda: [("weight", tensor)]
    for number in range(17):
        tensor.fill_(number + 1)
        watch.versions = [tensor._version]
        update(watch)
    watch._at_exit()
    found = read_run(tmp_path).first.weights
    assert sorted(found) == [*range(11), 17]
    assert found[17][0]["norm"] == pytest.approx(17 * 3**0.5)


def test_weights_are_digested_as_they_are_where_the_script_computes_without_values(tmp_path):
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=50))
    tensor = torch.ones(3)
    watch.weights = lambda: [("weight", tensor)]
    for _ in range(17):
        watch.versions = [tensor._version]
        update(watch)
    with FakeTensorMode(allow_non_fake_inputs=True):
        watch.expect_change(tensor)
    watch._at_exit()
    run = read_run(tmp_path)
    assert run.first.weights[17][0]["norm"] == pytest.approx(3**0.5)
    assert (run.steps, run.first.reached_its_end) == (17, True)


def test_weights_that_were_written_to_after_the_last_update_are_not_its_digest(tmp_path):
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=50))
    tensor = torch.ones(3)
    watch.weights = lambda: [("weight", tensor)]
    for _ in range(17):
        watch.versions = [tensor._version]
        update(watch)
    tensor.zero_()
    watch._at_exit()
    assert sorted(read_run(tmp_path).first.weights) == list(range(1, 11))


@pytest.fixture
def after_updates(tmp_path):
    """The updates that are digested, of 27 after each of which a script does something with its weight."""

    def make(access):
        watch = Watch(WatchSettings(folder=str(tmp_path), steps=50))
        weight = torch.nn.Parameter(torch.ones(3))
        watch.weights = lambda: [("weight", weight)]
        for _ in range(27):
            watch.versions = [weight._version]
            update(watch)
            if watch.is_undigested:
                access(watch, weight.data)
        watch._at_exit()
        return sorted(read_run(tmp_path).first.weights)

    return make


def test_scripts_that_read_their_weights_in_every_step_are_not_digested_in_every_step(after_updates):
    assert after_updates(lambda watch, data: watch.expect_change(data)) == [*range(1, 14), 20, 27]


def test_weights_edited_through_data_after_every_update_are_not_taken_for_the_last(after_updates):
    def edit(watch, data):
        watch.expect_change(data)
        data[:2].zero_()

    assert after_updates(edit) == [*range(1, 14), 20]


def test_weights_replaced_after_every_update_are_not_taken_for_the_last(after_updates):
    assert after_updates(lambda watch, data: watch.expect_change()) == [*range(1, 14), 20]


def test_loading_another_model_in_every_step_leaves_the_digest_of_the_last_update(after_updates):
    assert after_updates(lambda watch, data: watch.expect_change(is_counted=True)) == [*range(1, 14), 20, 27]


def test_a_script_that_reads_its_weights_without_end_keeps_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("pilotage.proof.watching.watch._MOST_HANDED_OUT", 5)
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=50))
    weight = torch.nn.Parameter(torch.ones(3))
    watch.weights, watch.versions = lambda: [("weight", weight)], [weight._version]
    reads = 0
    for _ in range(15):
        update(watch)
        while watch.is_undigested and reads < 100:
            reads += 1
            watch.expect_change(weight.data)
    assert reads == 3 + 2 * 6


def test_facts_that_updates_share_are_written_once(watch, tmp_path):
    first, second = {"mode": "eager", "rates": [0.1]}, {"mode": "eager", "rates": [0.2]}
    for facts in (first, first, first, second, second, first, first, first, first, first):
        watch.close(facts)
    watch.write()
    found = read_run(tmp_path).first.updates
    assert [each.rates for each in found] == [[0.1]] * 3 + [[0.2]] * 2 + [[0.1]] * 5
    assert [each.step for each in found] == list(range(1, 11))
    (path,) = tmp_path.glob("*.jsonl")
    assert path.read_text().count("rates") < 10


def test_a_process_that_is_killed_leaves_what_it_has_written(watch, tmp_path):
    for _ in range(10):
        update(watch)
    # As if some time had passed: events wait for a fifth of a second at most.
    watch.record.due = 0.0
    update(watch)
    assert read_run(tmp_path).steps == 11
    assert read_run(tmp_path).first.end is None


def test_later_updates_are_not_recorded_and_too_many_end_the_script(watch, tmp_path):
    for _ in range(12):
        update(watch)
    assert watch.is_stopping
    for _ in range(EXTRA_UPDATES - 1):
        update(watch)
    with pytest.raises(EnoughSteps):
        update(watch)
    run = read_run(tmp_path)
    assert run.steps == 12
    assert run.first.end["how"] == "stopped"


def test_a_script_that_catches_its_end_again_and_again_is_ended_for_good(watch, tmp_path, monkeypatch):
    ended = []
    monkeypatch.setattr("os._exit", ended.append)
    for _ in range(12 + EXTRA_UPDATES - 1):
        update(watch)
    for number in range(4):
        assert len(ended) == 0, number
        with pytest.raises(EnoughSteps):
            update(watch)
    assert ended == [0]
    (path,) = tmp_path.glob("*.jsonl")
    assert path.read_text().count('"event":"end"') == 1


def test_batches_of_other_loaders_do_not_belong_to_an_update(watch, tmp_path):
    class Load:
        is_skipped, samples = False, 4

        def __init__(self, loader):
            self.loader = loader

        def as_row(self):
            return [self.loader, 0, 4, None, None]

    watch.pending.batches = [Load(1), Load(0)]
    watch.pending.loader = 0
    update(watch)
    (found,) = read_run(tmp_path).first.updates
    assert [each["loader"] for each in found.fields["loads"]] == [0]
    assert watch.trained_loaders == {0}


def test_settings_survive_their_way_through_the_environment():
    settings = WatchSettings(folder="/somewhere", steps=7, seed=3, batch_factor=2, gradient_factor=4.0, noise=1e-7)
    assert WatchSettings.from_text(settings.as_text()) == settings
    assert json.loads(settings.as_text())["steps"] == 7


@pytest.mark.parametrize("shape", [(), (1,)])
def test_losses_in_float64_keep_all_their_digits(watch, tmp_path, shape):
    losses = [0.6769419879807054 + number for number in range(12)]
    for number, loss in enumerate(losses):
        watch.pending.losses.append(torch.full(shape if number < 3 else (), loss, dtype=torch.float64))
        watch.close({"line": "train.py:3", "mode": "eager", "rates": [0.1]})
    assert [each.losses[0] for each in read_run(tmp_path).first.updates] == losses


def test_a_loss_in_float16_is_averaged_in_float32():
    loss = mean_loss(torch.full((4096,), 60000.0, dtype=torch.float16))
    assert (loss.dtype, float(loss)) == (torch.float32, pytest.approx(60000.0, rel=1e-3))
