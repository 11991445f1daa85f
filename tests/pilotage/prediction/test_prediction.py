from dataclasses import replace

import pytest
import torch

from pilotage.prediction.devices import device_model
from pilotage.prediction.prediction import predicted, traced
from pilotage.prediction.splitting.units import assigned_stages
from pilotage.prediction.subject import Loading


def test_time_is_the_sum_of_its_parts(chain_prediction):
    for name in ("h200", "bow", "cpu", "gaudi2"):
        prediction = chain_prediction(name)
        assert prediction.update_seconds == pytest.approx(sum(prediction.by_part.values()))
        assert prediction.throughput == pytest.approx(8 / prediction.update_seconds)
        assert prediction.fits


def test_device_iterations_share_the_cost_of_a_call(chain_prediction):
    base = chain_prediction("bow")
    often = replace(base.traced, batching=replace(base.traced.batching, device_iterations=10))
    saved = base.update_seconds - predicted(often, base.model).update_seconds
    assert saved == pytest.approx(0.9 * base.model.overheads.call_seconds, rel=0.01)


def test_a_synchronous_loader_adds_its_time_and_an_asynchronous_one_hides_it(chain_prediction):
    base = chain_prediction("bow")
    slow = Loading(sample_seconds=1e-5)
    waits = predicted(replace(base.traced, loading=slow), base.model)
    hides = predicted(replace(base.traced, loading=replace(slow, overlaps=True)), base.model)
    assert waits.update_seconds == pytest.approx(base.update_seconds + 8e-5)
    assert hides.update_seconds == pytest.approx(base.update_seconds)
    behind = Loading(sample_seconds=1.0, overlaps=True)
    assert predicted(replace(base.traced, loading=behind), base.model).update_seconds == pytest.approx(8.0)


def test_replicas_sum_their_gradients(chain_prediction):
    base = chain_prediction("h200")
    many = predicted(replace(base.traced, batching=replace(base.traced.batching, replicas=4)), base.model)
    assert many.by_part["collectives"] > 0
    assert "collectives" not in base.by_part
    assert 3 < many.throughput / base.throughput < 4
    assert many.devices == 4


def test_stages_have_a_schedule_and_a_bubble(chain_prediction):
    base = chain_prediction("bow")
    half = next(i for i, each in enumerate(base.traced.update.operations) if each.module == "layers.2")
    both = predicted(base.traced, base.model, assigned=assigned_stages(base, [half]))
    assert both.devices == both.pipeline.stages == 2
    assert both.by_part["bubble"] > 0
    assert all(each.forward > 0 and each.backward > 0 and each.update > 0 for each in both.stage_seconds)


def test_a_model_that_is_too_large_does_not_fit(subject_of, chain):
    model = device_model("mk1")
    wide = [torch.empty(2, 4096, device="meta")] * 2
    with torch.device("meta"):
        module = chain(4, 4096)
    prediction = predicted(traced(subject_of(module, wide), model), model)
    assert not prediction.fits
    assert prediction.peak_bytes > 4 * 4 * 4096 * 4096 * 3


def test_inference_has_no_update(subject_of):
    model = device_model("h200")
    prediction = predicted(traced(subject_of(optimizer=None), model), model)
    assert not any(each.phase.value == "update" for each in prediction.traced.update.operations)
    assert prediction.throughput > 0
