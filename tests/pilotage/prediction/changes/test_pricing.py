import time
from dataclasses import replace

import pytest
import torch
from torch import nn

from pilotage.prediction.changes.pricing import priced_changes
from pilotage.prediction.changes.variants import in_type, repeated_blocks, with_accumulation
from pilotage.prediction.devices import device_model
from pilotage.prediction.prediction import predicted, traced
from pilotage.prediction.subject import Loading


@pytest.fixture(scope="module")
def priced(subject_of, chain):
    model = device_model("bow")
    wide = [torch.zeros(64, 256), torch.zeros(64, 256)]
    subject = replace(subject_of(chain(6, 256), wide), loading=Loading(sample_seconds=1e-5))
    base = predicted(traced(subject, model), model)
    changes, left_out = priced_changes(subject, base, seconds=100.0)
    return base, {each.option: each for each in changes}, left_out


def test_every_kind_of_change_is_priced(priced):
    _, changes, left_out = priced
    assert left_out == []
    assert changes.keys() == {
        "device iterations 10",
        "asynchronous loading",
        "8-bit input",
        "replicas 2",
        "stages 2",
        "offloading activations",
        "half precision",
        "recomputation",
        "accumulation 4",
        "offloading optimizer state",
        "micro-batch 32",
        "micro-batch 128",
    }


def test_changes_have_the_effect_that_they_are_made_for(priced):
    base, changes, _ = priced
    assert changes["asynchronous loading"].update_seconds < base.update_seconds
    assert changes["device iterations 10"].throughput > base.throughput
    assert changes["8-bit input"].update_seconds < base.update_seconds
    assert changes["replicas 2"].throughput > 1.2 * base.throughput
    assert changes["half precision"].peak_bytes < base.peak_bytes
    assert changes["micro-batch 32"].peak_bytes < base.peak_bytes < changes["micro-batch 128"].peak_bytes
    assert changes["offloading activations"].update_seconds > base.update_seconds
    assert changes["stages 2"].peak_bytes < base.peak_bytes


def test_more_replicas_or_iterations_do_not_shorten_the_way_of_inputs(priced):
    base, changes, _ = priced
    assert changes["replicas 2"].throughput <= 2 * base.throughput
    # A call and the copy of its first micro-batch are shared by ten updates; the link is not.
    inputs = 2 * 64 * 256 * 4
    shared = base.model.overheads.call_seconds + inputs / base.model.host.copy_bytes_per_second
    saved = base.update_seconds - changes["device iterations 10"].update_seconds
    assert saved == pytest.approx(0.9 * shared, rel=0.01)
    # Ten times as many inputs lie on the device.
    more = changes["device iterations 10"].peak_bytes - base.peak_bytes
    assert more == pytest.approx(9 * inputs * base.model.tiles.imbalance, rel=0.01)


def test_without_time_nothing_is_priced(priced, subject_of):
    changes, left_out = priced_changes(subject_of(), priced[0], seconds=-1.0)
    assert changes == []
    assert "half precision" in left_out


def test_another_type_lasts_as_long_as_the_block(subject_of):
    subject = subject_of()
    with in_type(subject, torch.float16) as changed:
        assert {each.dtype for each in subject.module.parameters()} == {torch.float16}
        assert {each.dtype for each in changed.micro_batch} == {torch.float16}
    assert {each.dtype for each in subject.module.parameters()} == {torch.float32}
    assert all(each.device.type == "cpu" for each in subject.module.parameters())


def test_tied_weights_stay_tied_in_another_type(subject_of):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x)).sum()

    module = Tied()
    with in_type(subject_of(module, [torch.zeros(2, 4)]), torch.float16):
        assert module.a.weight is module.b.weight


def test_the_longest_chain_of_equal_blocks_is_recomputed(chain):
    module = nn.ModuleDict({"small": chain(8, 4), "large": chain(5, 64)})
    assert repeated_blocks(module) == list(module["large"].layers)
    assert repeated_blocks(nn.Linear(4, 4)) == []


def test_accumulation_is_an_option(subject_of):
    assert with_accumulation(subject_of(), 8).execution.batching.gradient_accumulation == 8


def test_only_processor_time_counts(subject_of, monkeypatch):
    model, subject = device_model("bow"), subject_of()
    base = predicted(traced(subject, model), model)
    moments = iter(range(0, 10_000, 1000))
    monkeypatch.setattr(time, "perf_counter", lambda: next(moments))
    changes, left_out = priced_changes(subject, base, seconds=100.0, captures=False)
    assert changes
    assert not left_out
